package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
)

const (
	// factsTimeout bounds each question to the API server: a bundle is wanted most
	// when it does not answer.
	factsTimeout = 5 * time.Second
	// maxEvents bounds the events of the node in a bundle.
	maxEvents = 500
)

// apiFacts returns what of the node only the API server knows: the Node object and
// its recent Events, as files of the bundle.
func apiFacts(core rest.Interface, node string) func(context.Context) []extra {
	return func(ctx context.Context) []extra {
		return []extra{
			fetch(ctx, "kubernetes/node.json", core.Get().Resource("nodes").Name(node)),
			fetch(ctx, "kubernetes/node-events.json", core.Get().Resource("events").VersionedParams(&metav1.ListOptions{
				FieldSelector: fields.Set{"involvedObject.kind": "Node", "involvedObject.name": node}.String(),
				Limit:         maxEvents,
			}, metav1.ParameterCodec)),
		}
	}
}

func fetch(ctx context.Context, path string, req *rest.Request) extra {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	answer := req.SetHeader("Accept", "application/json").Do(ctx)
	// Raw's own error is not in the server's words.
	if err := answer.Error(); err != nil {
		return extra{Path: path, Err: err.Error()}
	}
	raw, err := answer.Raw()
	if err != nil {
		return extra{Path: path, Err: err.Error()}
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, raw, "", "  ") != nil {
		return extra{Path: path, Data: raw}
	}
	return extra{Path: path, Data: pretty.Bytes()}
}
