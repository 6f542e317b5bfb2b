// Package bundlefs opens a bundle as a file system. It is apart from package
// bundle so that the agent does not link the readers of every archive format.
package bundlefs

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/mholt/archives"
)

// Open returns the files of the bundle at path, a .tar.gz on disk. Reading is by
// scanning the archive: it is meant for a few files, not for all. What it returns
// holds no resources; each file that is opened from it is closed by the caller.
func Open(ctx context.Context, path string) (fs.FS, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	fsys, err := archives.FileSystem(ctx, path, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return fsys, nil
}
