package ledger

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
)

// maxSeen is how many findings are recognised when their records are read again.
// What is read again after a crash is what came within about a second.
const maxSeen = 1024

// seen is a ring of the positions of the last findings, as hashes. A high-water mark
// would be smaller, but findings may be held back and come out of order.
type seen struct {
	ring []uint64
	next int
	set  map[uint64]struct{}
}

// add reports whether position is new, and remembers it.
func (s *seen) add(position string) bool {
	h := fnv.New64a()
	h.Write([]byte(position))
	return s.push(h.Sum64())
}

func (s *seen) push(k uint64) bool {
	if s.set == nil {
		s.set = map[uint64]struct{}{}
	}
	if _, ok := s.set[k]; ok {
		return false
	}
	s.set[k] = struct{}{}
	if len(s.ring) < maxSeen {
		s.ring = append(s.ring, k)
		return true
	}
	delete(s.set, s.ring[s.next])
	s.ring[s.next] = k
	s.next = (s.next + 1) % maxSeen
	return true
}

// MarshalJSON writes the hashes from the oldest, as base64.
func (s *seen) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 8*len(s.ring))
	for i := range s.ring {
		b = binary.BigEndian.AppendUint64(b, s.ring[(s.next+i)%len(s.ring)])
	}
	return json.Marshal(base64.RawStdEncoding.EncodeToString(b))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *seen) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b)%8 != 0 {
		return fmt.Errorf("positions seen: not a list of hashes")
	}
	*s = seen{}
	for ; len(b) > 0; b = b[8:] {
		s.push(binary.BigEndian.Uint64(b))
	}
	return nil
}
