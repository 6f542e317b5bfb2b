package image

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Libraries returns the paths of the dynamic loader and of all shared libraries
// that a program needs, of their own needs too. It is empty for a static program.
// Unlike ldd it does not run the program.
func Libraries(binary string) ([]string, error) {
	loader, needed, err := needs(binary)
	if err != nil {
		return nil, err
	}
	var found []string
	if loader != "" {
		found = append(found, loader)
	}
	for len(needed) > 0 {
		name := needed[0]
		needed = needed[1:]
		path, err := findLibrary(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", binary, err)
		}
		if slices.Contains(found, path) || filepath.Base(loader) == name {
			continue
		}
		found = append(found, path)
		_, more, err := needs(path)
		if err != nil {
			return nil, err
		}
		needed = append(needed, more...)
	}
	return found, nil
}

// needs reads the loader (PT_INTERP) and the libraries (DT_NEEDED) of an ELF file.
func needs(path string) (loader string, libraries []string, err error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		b, err := io.ReadAll(p.Open())
		if err != nil {
			return "", nil, fmt.Errorf("%s: %w", path, err)
		}
		loader = strings.TrimRight(string(b), "\x00")
	}
	if f.Section(".dynamic") == nil {
		return loader, nil, nil
	}
	libraries, err = f.ImportedLibraries()
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return loader, libraries, nil
}

// findLibrary looks a library up where the loader would without a cache: ld.so(8),
// with the folders of Debian's multiarch.
func findLibrary(name string) (string, error) {
	dirs := []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib"}
	for _, pattern := range []string{"/lib/*-linux-gnu", "/usr/lib/*-linux-gnu"} {
		multiarch, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		dirs = append(multiarch, dirs...)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("the library %s is nowhere in %s", name, strings.Join(dirs, ", "))
}
