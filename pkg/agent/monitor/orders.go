package monitor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// Order is a person's word given on the node itself, by "node-agent clear": a file in
// the state directory, which only root can write to.
type Order struct {
	// Reason and Subject are the fault that is over; an empty subject means all.
	Reason  string `json:"reason"`
	Subject string `json:"subject,omitempty"`
	// By is who says so.
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// ordersDir is the folder of orders in the state directory.
const ordersDir = "orders"

// GiveOrder leaves an order for the agent that works with the state directory.
func GiveOrder(stateDir string, o Order) error {
	dir := filepath.Join(stateDir, ordersDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return host.ReplaceFile(filepath.Join(dir, o.At.UTC().Format("20060102T150405.000000000")+".json"), b)
}

// watchOrders tells when there may be orders, at the start too.
func (m *Monitor) watchOrders(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	ch <- struct{}{}
	dir := filepath.Join(m.opts.StateDir, ordersDir)
	w, err := fsnotify.NewWatcher()
	if err == nil {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			err = w.Add(dir)
		}
		if err != nil {
			w.Close()
		}
	}
	if err != nil {
		m.log.Warn("\"node-agent clear\" will be obeyed at the next start only", "err", err)
		return ch
	}
	go func() {
		defer w.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.Errors: //nolint:errcheck // an overflow loses wake-ups only; the next file brings one
			case e := <-w.Events:
				if e.Has(fsnotify.Create) && filepath.Ext(e.Name) == ".json" {
					select {
					case ch <- struct{}{}:
					default:
					}
				}
			}
		}
	}()
	return ch
}

// obeyOrders obeys all orders and removes them.
func (m *Monitor) obeyOrders() {
	names, err := filepath.Glob(filepath.Join(m.opts.StateDir, ordersDir, "*.json"))
	if err != nil {
		return
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		var o Order
		if err == nil {
			err = json.Unmarshal(b, &o)
		}
		if err != nil || o.Reason == "" {
			m.log.Warn("an order cannot be read, it is thrown away", "file", name, "err", err)
		} else {
			n := m.ledger.AllClear(o.Reason, o.Subject, o.By+" at "+o.At.UTC().Format(time.RFC3339))
			m.log.Info("all-clear", "reason", o.Reason, "subject", o.Subject, "by", o.By, "faults", n)
		}
		if err := os.Remove(name); err != nil {
			m.log.Warn("an order cannot be removed", "file", name, "err", err)
		}
	}
}
