package check

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Info answers what a Check says of itself. Checks embed it.
type Info struct {
	ID    string
	For   health.ConditionType
	Codes []string
	Every time.Duration
}

// Name implements Check.
func (i Info) Name() string { return i.ID }

// Condition implements Check.
func (i Info) Condition() health.ConditionType { return i.For }

// Reasons implements Check.
func (i Info) Reasons() []string { return i.Codes }

// Interval implements Check.
func (i Info) Interval() time.Duration { return i.Every }
