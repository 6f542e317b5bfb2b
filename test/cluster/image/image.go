// Package image builds a container image of one program without a registry and
// without a container tool.
//
// The base of the image is this machine's glibc, as far as the program needs it:
// its dynamic loader and the libraries that it is linked with. A static program
// gets none.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Spec says what goes into an image.
type Spec struct {
	// Binary is the program's path on this machine. In the image it lies in /.
	Binary string
	// Args are given to the program before those of the pod.
	Args []string
}

// Write writes an image in docker-archive format, which "ctr images import"
// reads. The output depends on the program and its libraries alone.
func Write(w io.Writer, name string, spec Spec) error {
	layer, err := layerOf(spec.Binary)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config": map[string]any{
			"Entrypoint": append([]string{"/" + filepath.Base(spec.Binary)}, spec.Args...),
			"Env":        []string{"PATH=/"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	if err != nil {
		return err
	}
	configName := strings.TrimPrefix(digest(config), "sha256:") + ".json"
	manifest, err := json.Marshal([]map[string]any{
		{"Config": configName, "RepoTags": []string{name}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	for _, f := range []struct {
		name string
		data []byte
	}{{configName, config}, {"layer.tar", layer}, {"manifest.json", manifest}} {
		if err := put(tw, f.name, 0o644, f.data); err != nil {
			return err
		}
	}
	return tw.Close()
}

// layerOf returns a tar of the program, its libraries and an empty /tmp.
func layerOf(binary string) ([]byte, error) {
	libraries, err := Libraries(binary)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	tw := tar.NewWriter(&layer)
	if err := tw.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}); err != nil {
		return nil, err
	}
	files := append([]string{binary}, libraries...)
	for i, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(path, "/")
		if i == 0 {
			name = filepath.Base(binary)
		}
		if err := put(tw, name, 0o755, data); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	return layer.Bytes(), nil
}

func put(tw *tar.Writer, name string, mode int64, data []byte) error {
	if err := tw.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err := tw.Write(data)
	return err
}

func digest(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }
