package nvidia

import (
	"maps"
	"sync"
)

// Identity is what a GPU is called beside its PCI address.
type Identity struct {
	UUID   string `json:"uuid"`
	Serial string `json:"serial,omitempty"`
}

// maxIdentities bounds the memory that log text can claim.
const maxIdentities = 256

// Identities knows what the GPUs are called, by canonical PCI address. The driver's
// banner lines and NVML fill it. The zero value is ready, and safe for concurrent use.
type Identities struct {
	mu    sync.Mutex
	known map[string]Identity
}

// Get returns the identity of the GPU at a PCI address, zero when it is unknown.
func (i *Identities) Get(pci string) Identity {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.known[CanonicalPCI(pci)]
}

// Set takes an identity and says whether it is news. One without a serial number
// keeps the number that the same GPU had.
func (i *Identities) Set(pci string, id Identity) bool {
	pci = CanonicalPCI(pci)
	i.mu.Lock()
	defer i.mu.Unlock()
	before, ok := i.known[pci]
	if !ok && len(i.known) >= maxIdentities {
		return false
	}
	if id.Serial == "" && id.UUID == before.UUID {
		id.Serial = before.Serial
	}
	if i.known == nil {
		i.known = map[string]Identity{}
	}
	i.known[pci] = id
	return id != before
}

// All returns a copy of what is known.
func (i *Identities) All() map[string]Identity {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.known)
}
