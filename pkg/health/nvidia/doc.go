// Package nvidia finds faults of NVIDIA GPUs and NVSwitches: in the kernel's log
// (Detector) and in what the driver's management library says (the checks).
//
// The log half is plain Go and needs no driver. A line of the log becomes an event
// (parse), events of one device that belong together become an incident, and an
// incident becomes one finding, led by its worst event.
//
// The texts are those of the driver's open part
// (github.com/NVIDIA/open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/rc and
// kernel-open/nvidia) and of NVIDIA's Xid catalogue. Severities are those of
// pkg/health's catalogue of reasons, which are not always NVIDIA's.
package nvidia
