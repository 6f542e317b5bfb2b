/*
 * A stand-in for NVIDIA's management library: the functions that the agent calls,
 * answered from a file that a test changes while it runs.
 *
 * FAKENVML_STATE names the file: one JSON object without nesting, whose values are
 * numbers. A key that is missing has its default. Keys of one GPU begin "gpuN.".
 *
 *   init          what nvmlInit returns (0)
 *   count         how many GPUs there are (8)
 *   hang          while 1, nvmlDeviceGetCount does not return (0)
 *   event         an event is delivered each time this number grows (0)
 *   event.gpu, event.xid, event.type    which (0, 0, 8: an Xid)
 *   gpuN.return   what the calls about this GPU return (0); 15 is lost
 *   gpuN.recovery, gpuN.pending, gpuN.failure, gpuN.ecc, gpuN.replays, gpuN.temp,
 *   gpuN.clocks, gpuN.fabric.state, gpuN.fabric.status, gpuN.fabric.health
 *   gpuN.linkL    1 while the link is up (1)
 *
 * FAKENVML_DEVICE names a file that is held open while the library is initialised,
 * as the real one holds /dev/nvidiactl.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml.h"

#define LINKS 18

static int device_fd = -1;
static long event_seen;

struct nvmlDevice_st { int index; };
static struct nvmlDevice_st devices[64];
static struct nvmlEventSet_st { int unused; } event_set;

/* go-nvml's nvml.h wraps each handle into a struct, which has the pointer's layout. */
static nvmlDevice_t device(int i) {
	nvmlDevice_t d = {&devices[i]};
	devices[i].index = i;
	return d;
}

/* get reads the value of a key from the file, each time anew. */
static long get(const char *key, long missing) {
	static __thread char text[65536];
	const char *path = getenv("FAKENVML_STATE");
	char quoted[128];
	FILE *f = path ? fopen(path, "r") : NULL;
	if (!f)
		return missing;
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	snprintf(quoted, sizeof quoted, "\"%s\":", key);
	const char *at = strstr(text, quoted);
	return at ? strtol(at + strlen(quoted), NULL, 0) : missing;
}

static long of(nvmlDevice_t d, const char *key, long missing) {
	char full[96];
	snprintf(full, sizeof full, "gpu%d.%s", d.handle->index, key);
	return get(full, missing);
}

#define CHECK(d) do { long r = of(d, "return", 0); if (r) return (nvmlReturn_t)r; } while (0)

nvmlReturn_t nvmlInit_v2(void) {
	long r = get("init", 0);
	if (r)
		return (nvmlReturn_t)r;
	const char *path = getenv("FAKENVML_DEVICE");
	if (path && device_fd < 0)
		device_fd = open(path, O_RDONLY | O_CLOEXEC);
	event_seen = get("event", 0);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void) {
	if (device_fd >= 0)
		close(device_fd);
	device_fd = -1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *s, unsigned int n) { snprintf(s, n, "570.133.20"); return NVML_SUCCESS; }
nvmlReturn_t nvmlSystemGetNVMLVersion(char *s, unsigned int n) { snprintf(s, n, "12.570.133.20"); return NVML_SUCCESS; }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n) {
	while (get("hang", 0))
		usleep(20000);
	*n = (unsigned int)get("count", 8);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *d) {
	if (i >= sizeof devices / sizeof devices[0])
		return NVML_ERROR_INVALID_ARGUMENT;
	*d = device((int)i);
	CHECK(*d);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *s, unsigned int n) {
	CHECK(d);
	snprintf(s, n, "GPU-00000000-0000-0000-0000-%012d", d.handle->index);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) {
	CHECK(d);
	memset(p, 0, sizeof *p);
	snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", 0x53 + d.handle->index * 16);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *s, unsigned int n) { CHECK(d); snprintf(s, n, "NVIDIA H100 80GB HBM3"); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t d, char *s, unsigned int n) { CHECK(d); snprintf(s, n, "16539230260%02d", d.handle->index); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t t, unsigned int *v) { (void)t; CHECK(d); *v = (unsigned int)of(d, "temp", 34); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t t, unsigned int *v) { (void)t; CHECK(d); *v = 89; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t d, unsigned int *v) { CHECK(d); *v = (unsigned int)of(d, "replays", 0); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, nvmlEnableState_t *v) { CHECK(d); *v = NVML_FEATURE_ENABLED; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *now, unsigned int *next) { CHECK(d); *now = *next = 0; return NVML_SUCCESS; }

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t kind, nvmlEccCounterType_t since, unsigned long long *v) {
	(void)since;
	CHECK(d);
	*v = kind == NVML_MEMORY_ERROR_TYPE_UNCORRECTED ? (unsigned long long)of(d, "ecc", 0) : 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned int *c, unsigned int *u, unsigned int *pending, unsigned int *failure) {
	CHECK(d);
	*c = *u = 0;
	*pending = (unsigned int)of(d, "pending", 0);
	*failure = (unsigned int)of(d, "failure", 0);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t d, nvmlPageRetirementCause_t c, unsigned int *n, unsigned long long *a) { (void)d; (void)c; (void)n; (void)a; return NVML_ERROR_NOT_SUPPORTED; }

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int link, nvmlEnableState_t *v) {
	char key[32];
	CHECK(d);
	if (link >= LINKS)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(key, sizeof key, "link%u", link);
	*v = of(d, key, 1) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *v) { CHECK(d); *v = (unsigned long long)of(d, "clocks", 1); return NVML_SUCCESS; }

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *values) {
	CHECK(d);
	for (int i = 0; i < n; i++) {
		values[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		if (values[i].fieldId == NVML_FI_DEV_GET_GPU_RECOVERY_ACTION) {
			values[i].nvmlReturn = NVML_SUCCESS;
			values[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
			values[i].value.uiVal = (unsigned int)of(d, "recovery", 0);
		}
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t d, nvmlGpuFabricInfoV_t *info) {
	nvmlGpuFabricInfo_v2_t *v2 = (nvmlGpuFabricInfo_v2_t *)info;
	CHECK(d);
	if (v2->version != nvmlGpuFabricInfo_v2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	v2->state = (nvmlGpuFabricState_t)of(d, "fabric.state", NVML_GPU_FABRIC_STATE_COMPLETED);
	v2->status = (nvmlReturn_t)of(d, "fabric.status", NVML_SUCCESS);
	v2->healthMask = (unsigned int)of(d, "fabric.health", 0x51aa);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) { set->handle = (void *)&event_set; return NVML_SUCCESS; }
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { (void)set; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, unsigned long long *v) { CHECK(d); *v = nvmlEventTypeXidCriticalError | nvmlEventTypeDoubleBitEccError; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set) { (void)types; (void)set; CHECK(d); return NVML_SUCCESS; }

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
	(void)set;
	for (unsigned int waited = 0; waited < timeout_ms; waited += 10) {
		long now = get("event", 0);
		if (now > event_seen) {
			event_seen = now;
			memset(data, 0, sizeof *data);
			int i = (int)get("event.gpu", 0) & 63;
			data->device = device(i);
			data->eventType = (unsigned long long)get("event.type", nvmlEventTypeXidCriticalError);
			data->eventData = (unsigned long long)get("event.xid", 0);
			return NVML_SUCCESS;
		}
		usleep(10000);
	}
	return NVML_ERROR_TIMEOUT;
}
