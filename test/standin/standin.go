// Package standin is the least that an agent of any make does for a
// NodeDiagnostic: it sets captureStatuses and puts a tar.gz where the kubelet serves
// it. It knows no observedGeneration, no conditions, no manifest and no checksum, so
// that what works with it works with the contract alone.
package standin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

// Agent answers the NodeDiagnostics of one node.
type Agent struct {
	Node string
	// Dir is the node's /var/log/support as this process sees it. It is made if it is
	// not there.
	Dir string
	// Work is how long it pretends to collect.
	Work time.Duration
	// Bundle is what it has collected then; nil fails the capture.
	Bundle []byte
}

// Run answers requests until ctx ends.
func (a *Agent) Run(ctx context.Context, cfg *rest.Config) error {
	client, err := kube.NewClient(cfg, v1alpha1.GroupVersion())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(a.Dir, 0o700); err != nil {
		return err
	}
	var answered types.UID
	kube.Follow(ctx, client, v1alpha1.Resource, a.Node, &v1alpha1.NodeDiagnostic{}, slog.New(slog.DiscardHandler),
		func(obj *v1alpha1.NodeDiagnostic) {
			if obj == nil || obj.UID == answered || obj.Spec.LogCapture == nil {
				return
			}
			answered = obj.UID
			err = errors.Join(err, a.answer(ctx, client))
		})
	return err
}

func (a *Agent) answer(ctx context.Context, client rest.Interface) error {
	started := time.Now().UTC().Format(time.RFC3339)
	if err := a.report(ctx, client, map[string]any{"running": map[string]any{"startedAt": started}}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(a.Work):
	}
	reason, message := v1alpha1.ReasonSuccess, "collected"
	if a.Bundle == nil {
		reason, message = v1alpha1.ReasonFailure, "there is nothing to collect"
	} else if err := os.WriteFile(filepath.Join(a.Dir, a.Node+"-logs.tar.gz"), a.Bundle, 0o600); err != nil {
		reason, message = v1alpha1.ReasonFailure, err.Error()
	}
	return a.report(ctx, client, map[string]any{"completed": map[string]any{
		"reason": reason, "message": message,
		"startedAt": started, "finishedAt": time.Now().UTC().Format(time.RFC3339),
	}})
}

// report writes the state as bare JSON: what the Go types would add must not help.
func (a *Agent) report(ctx context.Context, client rest.Interface, state map[string]any) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"captureStatuses": []any{map[string]any{"type": "Log", "state": state}},
	}})
	if err != nil {
		return err
	}
	err = client.Patch(types.MergePatchType).Resource(v1alpha1.Resource).Name(a.Node).SubResource("status").Body(patch).Do(ctx).Error()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("status of %s: %w", a.Node, err)
	}
	return nil
}

// Pack makes a bundle of the files, given as names and contents in turn.
func Pack(namesAndContents ...string) ([]byte, error) {
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for i := 0; i+1 < len(namesAndContents); i += 2 {
		content := namesAndContents[i+1]
		h := &tar.Header{Name: namesAndContents[i], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content)), ModTime: time.Now()}
		if err := tw.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := tw.Write([]byte(content)); err != nil {
			return nil, err
		}
	}
	err := errors.Join(tw.Close(), zw.Close())
	return b.Bytes(), err
}
