package collect

import (
	"slices"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// fullTable is all that is collected, by category. Paths are a contract: support
// tooling knows them.
func fullTable() []entry {
	return slices.Concat(
		category(v1alpha1.LogCategoryBase, baseTable()...),
		category(v1alpha1.LogCategorySystem, slices.Concat(
			kernelTable(), procTable(), systemTable(), storageTable(), autoModeTable(), bottlerocketTable())...),
		category(v1alpha1.LogCategoryNetworking, slices.Concat(networkingTable(), firewallTable(), cniTable())...),
		category(v1alpha1.LogCategoryRuntime, slices.Concat(kubeletTable(), containerdTable(), criTable())...),
		category(v1alpha1.LogCategoryDevice, deviceTable()...),
	)
}

// podLogs are entries for the logs of pods, one for each pattern of
// NAMESPACE_POD_UID folders.
func podLogs(pods ...string) []entry {
	var out []entry
	for _, p := range pods {
		out = append(out, glob("var_log/", "/var/log/pods/", p+"/*/*").max(logBytes))
	}
	return out
}
