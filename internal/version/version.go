// Package version tells which build this is.
package version

import "runtime/debug"

// version is set by the release build: -ldflags "-X …/internal/version.version=v1.2.3".
var version string

// Version returns the release, such as "v1.2.3", or the module's version for a
// binary made by "go install", or "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
