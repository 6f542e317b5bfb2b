package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

// images is how many images a kubelet reports at most by default.
const images = 50

// Large is the i-th Node of a large cluster, about 12 KiB of JSON as a kubelet with
// many images writes it. One of fifty is sick.
func Large(now time.Time, i int) *corev1.Node {
	m := maker{now}
	conditions := m.well("KernelReady", "ContainerRuntimeReady", "NetworkingReady", "StorageReady")
	if i%50 == 0 {
		conditions[3].Status, conditions[3].Reason = corev1.ConditionFalse, "EBSVolumeStuck"
	}
	n := m.node("large", fmt.Sprintf("ip-10-%d-%d-%d.bench.internal", i>>16, i>>8&255, i&255), map[string]string{
		"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"kubernetes.io/hostname":           fmt.Sprintf("ip-10-%d-%d-%d.bench.internal", i>>16, i>>8&255, i&255),
		"node.kubernetes.io/instance-type": "m7i.4xlarge", "topology.kubernetes.io/region": "us-east-1",
		"topology.kubernetes.io/zone": "us-east-1" + string(rune('a'+i%3)), "karpenter.sh/nodepool": fmt.Sprintf("pool-%d", i%20),
		"karpenter.sh/capacity-type": "on-demand", "karpenter.k8s.aws/instance-ami-id": fmt.Sprintf("ami-%017x", i%4),
	}, conditions...)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}, {Type: corev1.NodeHostName, Address: n.Name}}
	n.Status.Capacity = corev1.ResourceList{
		"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("234"),
		"ephemeral-storage": resource.MustParse("100Gi"), "hugepages-1Gi": resource.MustParse("0"), "hugepages-2Mi": resource.MustParse("0"),
	}
	n.Status.Allocatable = n.Status.Capacity
	for k := range images {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{
				fmt.Sprintf("602401143452.dkr.ecr.us-east-1.amazonaws.com/team-%02d/service@sha256:%064x", k, i*images+k),
				fmt.Sprintf("602401143452.dkr.ecr.us-east-1.amazonaws.com/team-%02d/service:v1.%d", k, i),
			},
			SizeBytes: int64(100<<20 + k),
		})
	}
	return health(n, healthOf(now))
}

func healthOf(now time.Time) (h annotation.Health) {
	for _, name := range []string{"container-runtime", "kernel", "networking", "storage"} {
		h.Monitors = append(h.Monitors, annotation.Monitor{Name: name, State: annotation.MonitorOn, Since: now.Add(-ageOld)})
	}
	return h
}
