// Package e2e tests the programs against a real one-node cluster: API server,
// kubelet, containerd and journald as on any node (see test/cluster).
//
// Its tests have the build tag e2e and need root:
//
//	make test-e2e
//	go test -tags e2e ./test/e2e -run Interop
//
// A cluster that is up already is used and left alone; otherwise one is brought up
// and taken down in the end. Each test of the agent runs twice: the agent as a
// process on the node, with the rights of the kubelet, and as a privileged pod with
// the host's root at /host, as packaging/node-agent.yaml has it.
package e2e
