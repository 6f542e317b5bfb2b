package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/kubelet"
)

const (
	criTimeout = 5 * time.Second
	// criSamples is how many samples in a row must fail.
	criSamples = 3
)

// cri finds a container runtime that does not answer the simplest question of the
// kubelet's protocol.
type cri struct {
	check.Info
	opts   Options
	streak int
	// socket returns where the runtime listens, for the kubelet and for this process.
	socket func(ctx context.Context) (name, path string, err error)
	ask    func(ctx context.Context, path string) error
	// name and path are of the last kubelet that ran.
	name, path string
}

func newCRI(o Options, finder *kubelet.Finder) *cri {
	return &cri{
		Info: info("cri", time.Minute, "ContainerRuntimeUnavailable"), opts: o, ask: askVersion,
		socket: func(ctx context.Context) (string, string, error) {
			k, err := finder.Find(ctx)
			if err != nil {
				return "", "", err
			}
			return k.Endpoint, k.Files.Path(k.Endpoint), nil
		},
	}
}

// Samples implements check.Sampler.
func (c *cri) Samples() int { return criSamples }

// Run implements check.Check. Without a kubelet nobody needs the runtime; when the
// kubelet ends, its runtime is still asked.
func (c *cri) Run(ctx context.Context, _ *host.Host) ([]health.Finding, error) {
	name, path, err := c.socket(ctx)
	switch {
	case err == nil:
		c.name, c.path = name, path
	case !errors.Is(err, kubelet.ErrAbsent):
		return nil, err
	case c.path == "":
		return nil, check.ErrNoData
	}
	failure := c.ask(ctx, c.path)
	if failure != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var fs []health.Finding
	c.streak, fs = checkCRI(c.opts, c.streak, c.name, failure)
	return fs, nil
}

// checkCRI takes how many samples in a row have failed, and returns how many have now.
func checkCRI(o Options, streak int, socket string, failure error) (int, []health.Finding) {
	if failure == nil {
		return 0, nil
	}
	if streak++; streak < criSamples {
		return streak, nil
	}
	f := check.Finding(o.Catalog, "ContainerRuntimeUnavailable", "", fmt.Sprintf("The container runtime does not answer at %s.", socket))
	f.Evidence = fmt.Sprintf("%d calls of RuntimeService.Version failed in a row: %v", criSamples, failure)
	f.Fields = map[string]any{"socket": socket}
	return streak, []health.Finding{f}
}

// askVersion asks a runtime for its version. One that does not know the question has
// answered.
func askVersion(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, criTimeout)
	defer cancel()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = criapi.NewRuntimeServiceClient(conn).Version(ctx, &criapi.VersionRequest{})
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	return err
}
