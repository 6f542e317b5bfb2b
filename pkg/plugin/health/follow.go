package health

import (
	"context"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
)

func follow(ctx context.Context, sh *shell, c *cluster.Cluster, o *Options) error {
	return summarize(ctx, sh, c, o)
}
