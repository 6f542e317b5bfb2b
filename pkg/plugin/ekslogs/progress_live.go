package ekslogs

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// redrawInterval is how often live lines are drawn: enough for an eye.
const redrawInterval = 100 * time.Millisecond

// liveProgress draws one line for each node that is being worked on.
type liveProgress struct {
	mu sync.Mutex
	teller
	live  *term.Live
	width int
	// rows are the nodes at work, in the order in which they began.
	rows []*row
	// left is how many nodes have not ended, and done how many have.
	left, done int
	closed     bool
	stop       chan struct{}
	stopped    sync.WaitGroup
}

type row struct {
	node, what  string
	since       time.Time
	done, total int64
	rate        rate
}

func newLiveProgress(screen *term.Stream, nodes []string, width int) *liveProgress {
	p := &liveProgress{
		teller: teller{screen: screen, told: map[string]string{}},
		live:   term.NewLive(screen),
		width:  width,
		left:   len(nodes),
		stop:   make(chan struct{}),
	}
	p.stopped.Go(func() {
		tick := time.NewTicker(redrawInterval)
		defer tick.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-tick.C:
				p.mu.Lock()
				p.draw(nil)
				p.mu.Unlock()
			}
		}
	})
	return p
}

func (p *liveProgress) row(node string) *row {
	for _, r := range p.rows {
		if r.node == node {
			return r
		}
	}
	r := &row{node: node}
	p.rows = append(p.rows, r)
	return r
}

func (p *liveProgress) phase(node, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.row(node)
	*r = row{node: node, what: what, since: time.Now()}
}

func (p *liveProgress) bytes(node string, done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.row(node)
	r.done, r.total = done, total
	r.rate.add(time.Now(), done)
}

func (p *liveProgress) remark(node, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draw([]string{p.remarkLine(node, text)})
}

func (p *liveProgress) notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draw([]string{text})
}

func (p *liveProgress) end(r *Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = slices.DeleteFunc(p.rows, func(w *row) bool { return w.node == r.Node })
	p.left--
	p.done++
	if r.State == StateFailed {
		p.draw(p.endLines(r))
		return
	}
	// What went well is in the table at the end.
	p.draw(nil)
}

func (p *liveProgress) close() {
	p.mu.Lock()
	p.closed = true
	// A terminal that is gone is no reason to fail.
	_ = p.live.Clear()
	p.mu.Unlock()
	close(p.stop)
	p.stopped.Wait()
}

func (p *liveProgress) draw(finished []string) {
	if p.closed {
		for _, l := range finished {
			fmt.Fprintln(p.screen, l)
		}
		return
	}
	_ = p.live.Print(finished, p.lines(time.Now()))
}

func (p *liveProgress) lines(now time.Time) []string {
	const most = 20
	var lines []string
	for _, r := range p.rows {
		if len(lines) == most {
			break
		}
		lines = append(lines, p.screen.Paint(term.Title, term.Pad(r.node, p.width))+"  "+r.text(p.screen, now))
	}
	if more := p.left - len(lines); more > 0 || p.done > 0 && p.left > 0 {
		lines = append(lines, p.screen.Paint(term.Dim, fmt.Sprintf("%s ended, %d more to go", plural(p.done, "node"), max(more, 0))))
	}
	return lines
}

func (r *row) text(screen *term.Stream, now time.Time) string {
	text := screen.Paint(term.Accent, r.what)
	if r.done > 0 {
		text += "  " + term.Bytes(r.done)
		if r.total > 0 {
			text += fmt.Sprintf(" of %s, %d %%", term.Bytes(r.total), 100*r.done/r.total)
		}
		if r.rate.value > 0 {
			text += ", " + term.Bytes(int64(r.rate.value)) + "/s"
		}
		return text
	}
	return text + "  " + screen.Paint(term.Dim, now.Sub(r.since).Round(time.Second).String())
}
