package ekslogs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// archive packs entries in the order given.
func archive(t *testing.T, headers []tar.Header, contents []string) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for i, h := range headers {
		h.Size, h.Mode = int64(len(contents[i])), 0o644
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(contents[i])); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// foreignBundle is one of an agent that writes no manifest.
func foreignBundle(t *testing.T) []byte {
	return archive(t, []tar.Header{{Name: "system/ps.txt", Typeflag: tar.TypeReg}}, []string{"PID\n1\n"})
}

// ourBundle has a manifest with one item that failed.
func ourBundle(t *testing.T, content string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(content))
	m, err := json.Marshal(bundle.Manifest{
		SchemaVersion: bundle.SchemaVersion, AgentVersion: "v9.1.0", Node: "a",
		Items: []bundle.Item{
			{Path: "gpu/nvidia-smi.txt", Status: bundle.StatusFailed, Error: "timed out after 20s"},
			{Path: "kernel/dmesg.txt", Status: bundle.StatusOK, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive(t, []tar.Header{
		{Name: "kernel/dmesg.txt", Typeflag: tar.TypeReg},
		{Name: bundle.ManifestName, Typeflag: tar.TypeReg},
	}, []string{content, string(m)})
}
