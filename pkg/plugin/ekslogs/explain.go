package ekslogs

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/plugin/fetch"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// errNotInstalled says that the cluster has no NodeDiagnostics.
var errNotInstalled = errors.New("this cluster does not know NodeDiagnostics (nodediagnostics.eks.amazonaws.com): no agent is installed.\n" +
	"Install ekslogs, which brings the CustomResourceDefinition along (see docs/install.md), or only the definition:\n" +
	"  kubectl apply -f https://raw.githubusercontent.com/ekslogs/ekslogs/main/api/crds/eks.amazonaws.com_nodediagnostics.yaml")

// deniedError says which right the user lacks.
type deniedError struct {
	verb, resource string
	// said are the API server's own words, if any.
	said string
}

func (e *deniedError) Error() string {
	group, also := "", ""
	if e.resource == v1alpha1.Resource {
		group = v1alpha1.GroupVersion().Group
		also = ` of the API group "` + group + `"`
	}
	text := fmt.Sprintf("you may not %q %s%s", e.verb, e.resource, also)
	if e.said != "" {
		text += ": " + e.said
	}
	return text + fmt.Sprintf("\nThe rule that is missing in your ClusterRole:\n- apiGroups: [%q]\n  resources: [%q]\n  verbs: [%q]", group, e.resource, e.verb)
}

// explain turns an error of the API server for a request of verb on resource into
// one that says what to do.
func explain(err error, verb, resource string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "+verb):
		return &deniedError{verb: verb, resource: resource, said: term.Clean(err.Error())}
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not know you: log in again, or name another context with --context (%w)", err)
	case resource == v1alpha1.Resource && verb == "create" && apierrors.IsNotFound(err):
		return errNotInstalled
	}
	return err
}

// aboutTheRequest reports whether the error is one that every node would meet, so
// that nothing could be attempted at all.
func aboutTheRequest(err error) bool {
	var (
		denied  *deniedError
		unknown *unknownNodeError
	)
	return errors.As(err, &denied) || errors.As(err, &unknown) || errors.Is(err, errNotInstalled) || apierrors.IsUnauthorized(err)
}

// transferError is why a bundle did not come home, in words for a person.
type transferError struct {
	text  string
	cause error
}

func (e *transferError) Error() string { return e.text }

// Unwrap returns the cause.
func (e *transferError) Unwrap() error { return e.cause }

// explainDownload says what an error of a download means.
func explainDownload(err error, node string) error {
	var (
		resp   *fetch.ResponseError
		broken *fetch.BundleError
		local  *fetch.LocalError
	)
	switch {
	case errors.As(err, &broken):
		return fmt.Errorf("what the node sent is not a whole bundle: %w. Run it again to collect anew", err)
	case errors.As(err, &local), errors.Is(err, errInterrupted):
		return err
	case !errors.As(err, &resp):
		return fmt.Errorf("the download failed: %w", err)
	case resp.Code == http.StatusForbidden && (resp.Status != nil || strings.Contains(resp.Message, "nodes/proxy")):
		return &deniedError{verb: "get", resource: "nodes/proxy", said: term.Clean(resp.Message)}
	}
	return &transferError{text: whatItMeans(resp, node), cause: err}
}

// whatItMeans interprets an answer that is no bundle. The kubelet's own words come
// through the API server as plain text, those of the API server as a Status.
func whatItMeans(resp *fetch.ResponseError, node string) string {
	said := term.Clean(resp.Message)
	switch resp.Code {
	case http.StatusForbidden, http.StatusUnauthorized:
		return fmt.Sprintf("the node's kubelet refuses the API server (%s): check --kubelet-client-certificate of the API server and the kubelet's authorization", said)
	case http.StatusMethodNotAllowed:
		return fmt.Sprintf("the kubelet serves no logs (%s): its configuration needs enableSystemLogHandler: true and enableDebuggingHandlers: true, both of which are the default", said)
	case http.StatusNotFound:
		if resp.Status != nil {
			return "the API server says: " + said
		}
		return fmt.Sprintf("the agent says that it has collected, but the node's kubelet has no /var/log/support/%s-logs.tar.gz: "+
			"either it was swept (agents keep a bundle for ten minutes), or the agent does not write to the host's /var/log", node)
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Sprintf("the API server cannot reach the node's kubelet (%s): check that port 10250 is open from the control plane to the node", said)
	}
	return "the download failed: " + term.Clean(resp.Error())
}
