package collect

import "time"

func deviceTable() []entry {
	nvidia := func(path string, argv ...string) entry {
		return command(path, argv...).within(20 * time.Second).beside().only(onNVIDIA)
	}
	return append(podLogs(
		"kube-system_ebs-csi-*", "kube-system_efs-csi-*", "kube-system_fsx-csi-*", "kube-system_fsx-openzfs-csi-*",
		"kube-system_file-cache-csi-*", "kube-system_s3-csi-*", "mount-s3_*", "*_mountpoint-s3-*",
		"*_nvidia-device-plugin-*", "*_neuron-device-plugin-*", "*_aws-efa-k8s-device-plugin-*",
		"*_dcgm-exporter-*", "*_gpu-operator-*",
	),
		nvidia("gpu/nvidia-smi.txt", "nvidia-smi"),
		nvidia("gpu/nvidia-smi-q.txt", "nvidia-smi", "-q"),
		nvidia("gpu/nvidia-smi-topo.txt", "nvidia-smi", "topo", "-m"),
		nvidia("gpu/nvidia-smi-nvlink.txt", "nvidia-smi", "nvlink", "-s"),
		producer("gpu/", "nvidia-bug-report-exec.log", "nvidia-bug-report.log.gz", 75*time.Second, func(tmp string) []string {
			return []string{"nvidia-bug-report.sh", "--output-file", tmp}
		}).only(onNVIDIA),
		glob("gpu/proc/", "/proc/driver/nvidia/", "*", "*/*", "*/*/*", "*/*/*/*").only(onNVIDIA),
		journal("gpu/fabricmanager.log", "nvidia-fabricmanager").only(onNVIDIA),
		journal("gpu/persistenced.log", "nvidia-persistenced").only(onNVIDIA),
		file("gpu/fabricmanager-file.log", "/var/log/fabricmanager.log").only(onNVIDIA),
		command("neuron/neuron-ls.txt", "neuron-ls").within(20*time.Second).beside().only(onNeuron),
		command("neuron/neuron-top.txt", "neuron-top", "-n", "1").within(20*time.Second).beside().only(onNeuron),
		command("devices/lspci.txt", "lspci", "-vvv"),
		command("devices/lspci-tree.txt", "lspci", "-tv"),
		command("devices/lshw.txt", "lshw", "-short", "-quiet"),
		glob("devices/infiniband/", "/sys/class/infiniband/", "*/ports/*/state", "*/ports/*/hw_counters/*", "*/ports/*/counters/*"),
		command("devices/fi_info.txt", "fi_info", "-p", "efa"),
	)
}
