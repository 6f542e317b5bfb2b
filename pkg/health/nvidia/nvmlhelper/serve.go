package nvmlhelper

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

// library is NVML as Serve uses it.
type library interface {
	// open initialises NVML. The error is an *Unavailable.
	open() error
	// read takes a sample.
	read() (gpustate.State, error)
	// wait returns the next event, nil when there was none for a while. It may be
	// called beside read.
	wait(timeout time.Duration) (*Event, error)
	// close closes NVML and its device files.
	close()
}

// eventWait is how long one wait for an event lasts. Closing NVML takes up to that
// long, since a wait cannot be ended from outside.
const eventWait = 2 * time.Second

// Serve is the child: it answers requests from in until it ends, which happens when
// the parent closes it or dies. libraryPath is the NVML library to load, empty for
// the one that the dynamic linker finds.
func Serve(in io.Reader, out io.Writer, libraryPath string) error {
	s := &server{lib: newLibrary(libraryPath), out: json.NewEncoder(out)}
	defer s.close()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		if err := s.answer(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

type server struct {
	lib library

	mu  sync.Mutex // guards out
	out *json.Encoder

	opened bool
	stop   chan struct{}
	events sync.WaitGroup
}

func (s *server) write(r reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(r)
}

func (s *server) answer(r request) error {
	answer := reply{ID: r.ID}
	switch r.Op {
	case opPoll:
		state, err := s.poll()
		var u *Unavailable
		switch {
		case err == nil:
			answer.State = &state
		case errors.As(err, &u):
			answer.Failure = u
		default:
			answer.Failure = &Unavailable{Cause: CauseOther, Detail: err.Error()}
		}
	case opClose:
		s.close()
	default:
		answer.Failure = &Unavailable{Cause: CauseOther, Detail: "unknown request " + r.Op}
	}
	return s.write(answer)
}

func (s *server) poll() (gpustate.State, error) {
	if !s.opened {
		if err := s.lib.open(); err != nil {
			return gpustate.State{}, err
		}
		s.opened, s.stop = true, make(chan struct{})
		s.events.Add(1)
		go s.listen(s.stop)
	}
	state, err := s.lib.read()
	// A client that stays open blocks the reset of a GPU: until it has been repaired,
	// NVML is open only for the sample. After an error the next sample starts afresh.
	if err != nil || state.NeedsRelease() {
		s.close()
	}
	return state, err
}

// listen passes events on until stop is closed.
func (s *server) listen(stop <-chan struct{}) {
	defer s.events.Done()
	for {
		select {
		case <-stop:
			return
		default:
		}
		e, err := s.lib.wait(eventWait)
		if err != nil {
			return // this driver offers no events, or NVML is going away: the poll tells
		}
		if e != nil && s.write(reply{Event: e}) != nil {
			return
		}
	}
}

func (s *server) close() {
	if !s.opened {
		return
	}
	close(s.stop)
	s.events.Wait()
	s.lib.close()
	s.opened = false
}
