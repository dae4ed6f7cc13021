/* A stand-in for NVML whose GPUs live in one file that every process maps and locks. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, DENIED = 4,
       NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, LOST = 15,
       VERSION_MISMATCH = 25, UNKNOWN = 999 };
enum { REFUSE_SILENTLY = 1 << 0, NO_PERMISSION = 1 << 1, UNSUPPORTED_FIELDS = 1 << 2,
       STUCK_SW_THERMAL = 1 << 3, HW_SLOWDOWN = 1 << 4, DRIFT = 1 << 5, RUNS_LOW = 1 << 6,
       GPU_LOST = 1 << 7, NO_SMI_PROCESSES = 1 << 8, MIG = 1 << 9, ECC = 1 << 10,
       PERSISTENCE = 1 << 11 };
enum { SET_SM_LOCK = 1, RESET_SM_LOCK, SET_MEMORY_LOCK, RESET_MEMORY_LOCK, SET_POWER_LIMIT };
enum { REASON_IDLE = 0x1, REASON_SW_POWER_CAP = 0x4, REASON_HW_SLOWDOWN = 0x8,
       REASON_SW_THERMAL = 0x20 };
enum { CLOCK_GRAPHICS, CLOCK_SM, CLOCK_MEMORY, CLOCK_VIDEO, CLOCK_TYPES };

enum { MAX_GPUS = 4, MAX_PROCESSES = 16, MAX_WRITES = 256 };
enum { LOWEST_MHZ = 345, HIGHEST_MHZ = 1980, STEP_MHZ = 15, VIDEO_MHZ = 1545 };
enum { FAST_MEMORY_MHZ = 3201, SLOW_MEMORY_MHZ = 1593, IDLE_W = 90, LOW_BY_MHZ = 150 };
enum { FIELD_SW_POWER_CAP = 74, FIELD_SYNC_BOOST = 76, OLD_FIELDS = 251, NEW_FIELDS = 269 };
enum { MAGIC = 0x4c4d564e, TEMPERATURE_V1 = 0x100000C, MEMORY_V2 = 0x02000028 };
#define LATCH_NS 100000000ull
#define DRIFT_STEP_NS 250000000ull
#define EXPORT __attribute__((visibility("default")))

/* The layout of the file; tests/fake_nvml.py holds the same one. */
typedef struct { uint32_t pid, reserved; uint64_t used_bytes; } context;
typedef struct { uint32_t operation, gpu, a, b, pid, result, applied, reserved; } written;

typedef struct {
    char uuid[96], name[96];
    double load, dynamic_w; /* dynamic_w: watts above idle at full load and the highest clock */
    uint64_t settled_ns, latched_ns; /* CLOCK_MONOTONIC */
    uint64_t sw_power_cap_ns, sync_boost_ns, sw_thermal_ns, hw_thermal_ns, power_brake_ns;
    uint64_t memory_bytes, reserved_bytes, calls;
    int64_t fail_after_calls; /* calls that still succeed, negative: no end */
    uint32_t flags, compute_mode, temperature_c, torch_index, pci_bus;
    uint32_t locked_min_mhz, locked_max_mhz, mem_locked_min_mhz, mem_locked_max_mhz;
    uint32_t power_limit_mw, default_power_limit_mw, min_power_limit_mw, max_power_limit_mw;
    uint32_t latched_sm_mhz, latched_memory_mhz, latched_power_mw, process_count, reserved;
    context processes[MAX_PROCESSES];
} gpu;

typedef struct {
    uint32_t magic, size, gpu_count, driver_not_loaded;
    int32_t cuda_version;
    uint32_t reserved;
    char driver_version[80], nvml_version[80];
    uint64_t write_count;
    written writes[MAX_WRITES];
    gpu gpus[MAX_GPUS];
} state;

/* NVML's own structures, as pynvml declares them. */
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process_info;
typedef struct { unsigned long long total, free, used; } memory_info;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_info_v2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned version, sensor; int temperature; } temperature_info;
typedef struct {
    char legacy[16]; unsigned domain, bus, device, device_id, subsystem_id; char id[32];
} pci_info;
typedef struct {
    uint32_t field, scope; int64_t timestamp_us, latency_us; unsigned type; int result;
    union { unsigned long long ull; double d; } value;
} field_value;

static state *shared;
static unsigned references;

/* ---- the model -------------------------------------------------------------------------- */

static uint64_t clock_ns(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* The highest supported clock at or below this one, else the lowest. */
static unsigned snap(unsigned mhz) {
    if (mhz >= HIGHEST_MHZ) return HIGHEST_MHZ;
    if (mhz <= LOWEST_MHZ) return LOWEST_MHZ;
    return mhz - (mhz - LOWEST_MHZ) % STEP_MHZ;
}

static unsigned snap_memory(unsigned mhz) {
    return mhz >= FAST_MEMORY_MHZ ? FAST_MEMORY_MHZ : SLOW_MEMORY_MHZ;
}

static double draw_w(const gpu *g, unsigned mhz) {
    return IDLE_W + g->load * g->dynamic_w * pow((double)mhz / HIGHEST_MHZ, 2.5);
}

static unsigned highest_within_power(const gpu *g) {
    unsigned mhz = HIGHEST_MHZ;
    while (mhz > LOWEST_MHZ && 1000 * draw_w(g, mhz) > g->power_limit_mw) mhz -= STEP_MHZ;
    return mhz;
}

/* The clock that load and lock ask for, before drift and the power cap. */
static unsigned wanted_mhz(const gpu *g) {
    unsigned mhz = g->load > 0 ? HIGHEST_MHZ : LOWEST_MHZ;
    if (!g->locked_max_mhz) return mhz;
    unsigned low = snap(g->locked_min_mhz), high = snap(g->locked_max_mhz);
    mhz = mhz < low ? low : mhz > high ? high : mhz;
    return g->flags & RUNS_LOW ? snap(mhz > LOW_BY_MHZ ? mhz - LOW_BY_MHZ : 0) : mhz;
}

/* Drift stands for the clock's own wander; it does not decide whether the power cap holds. */
static int capped(const gpu *g) { return wanted_mhz(g) > highest_within_power(g); }

static unsigned sm_mhz(const gpu *g, uint64_t at_ns) {
    unsigned mhz = wanted_mhz(g), highest = highest_within_power(g);
    if (g->flags & DRIFT && g->locked_max_mhz) {
        unsigned phase = (unsigned)(at_ns / DRIFT_STEP_NS % 8);
        mhz = snap(mhz - STEP_MHZ * (phase < 4 ? phase : 8 - phase));
    }
    return mhz < highest ? mhz : highest;
}

static int idle(const gpu *g) { return !(g->load > 0) && !g->locked_max_mhz; }

static unsigned memory_mhz(const gpu *g) {
    if (g->mem_locked_max_mhz) return snap_memory(g->mem_locked_max_mhz);
    return idle(g) ? SLOW_MEMORY_MHZ : FAST_MEMORY_MHZ;
}

/* Brings counters and readings up to now; what is set in the state held until now. */
static void settle(gpu *g) {
    uint64_t now = clock_ns(CLOCK_MONOTONIC), boundary = now - now % LATCH_NS;
    if (now <= g->settled_ns) return;
    if (capped(g)) g->sw_power_cap_ns += now - g->settled_ns;
    if (boundary > g->latched_ns) {
        g->latched_sm_mhz = sm_mhz(g, boundary);
        g->latched_memory_mhz = memory_mhz(g);
        g->latched_power_mw = (uint32_t)(1000 * draw_w(g, g->latched_sm_mhz));
        g->latched_ns = boundary;
    }
    g->settled_ns = now;
}

/* For tests/fake_nvml.py, which holds the file's lock and gives its own mapping. */
EXPORT unsigned fake_nvml_state_size(void) { return (unsigned)sizeof(state); }
EXPORT void fake_nvml_settle(state *s, unsigned index) { settle(&s->gpus[index]); }
EXPORT unsigned fake_nvml_true_sm_mhz(state *s, unsigned index) {
    return sm_mhz(&s->gpus[index], clock_ns(CLOCK_MONOTONIC));
}

/* ---- the file, its lock and what every call begins with --------------------------------- */

/* Every call opens the file anew, so that threads and forks exclude each other too; the kernel
 * drops the lock of a process that is killed. */
static int hold(void) {
    const char *path = getenv("FAKE_NVML_STATE");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0 || !flock(file, LOCK_EX)) return file;
    close(file);
    return -1;
}

static void release(int *file) {
    if (*file < 0) return;
    flock(*file, LOCK_UN); /* a fork may hold a copy of the descriptor */
    close(*file);
}

static gpu *find(const void *device) {
    for (unsigned i = 0; i < shared->gpu_count; i++)
        if (device == &shared->gpus[i]) return &shared->gpus[i];
    return NULL;
}

static int touch(gpu *g) {
    if (!g) return INVALID_ARGUMENT;
    settle(g);
    g->calls++;
    if (!g->fail_after_calls) g->flags |= GPU_LOST;
    if (g->fail_after_calls >= 0) g->fail_after_calls--;
    return g->flags & GPU_LOST ? LOST : OK;
}

static int copy_text(char *to, unsigned size, const char *text) {
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(to, text);
    return OK;
}

/* Locks the file until the function returns. */
#define HOLD() \
    __attribute__((cleanup(release))) int held = hold(); \
    if (held < 0) return UNKNOWN
#define ENTER() \
    HOLD(); \
    if (!references) return UNINITIALIZED
#define ENTER_DEVICE() \
    ENTER(); \
    gpu *g = find(device); \
    int entered = touch(g); \
    if (entered) return entered
#define SYSTEM(name, parameters, ...) \
    EXPORT int name parameters { ENTER(); __VA_ARGS__; return OK; }
#define DEVICE(name, parameters, ...) \
    EXPORT int name parameters { ENTER_DEVICE(); __VA_ARGS__; return OK; }
#define GETTER(name, type, value) DEVICE(name, (void *device, type *out), *out = (type)(value))
#define PAIR_GETTER(name, type, first, second) \
    DEVICE(name, (void *device, type *one, type *two), *one = (type)(first); *two = (type)(second))

/* ---- the library and the system --------------------------------------------------------- */

EXPORT int nvmlInitWithFlags(unsigned flags) {
    HOLD();
    struct stat about;
    if (!shared) {
        if (fstat(held, &about) || about.st_size != sizeof(state)) return UNKNOWN;
        void *memory = mmap(NULL, sizeof(state), PROT_READ | PROT_WRITE, MAP_SHARED, held, 0);
        if (memory == MAP_FAILED) return UNKNOWN;
        shared = memory;
    }
    if (flags & ~7u) return INVALID_ARGUMENT;
    if (shared->magic != MAGIC || shared->size != sizeof(state)) return UNKNOWN;
    if (shared->driver_not_loaded) return DRIVER_NOT_LOADED;
    references++;
    return OK;
}
EXPORT int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT int nvmlInit(void) { return nvmlInitWithFlags(0); }
SYSTEM(nvmlShutdown, (void), references--)

EXPORT const char *nvmlErrorString(unsigned code) {
    static const char *const texts[] = {
        [OK] = "Success", [UNINITIALIZED] = "Uninitialized", [NOT_FOUND] = "Not Found",
        [INVALID_ARGUMENT] = "Invalid Argument", [NOT_SUPPORTED] = "Not Supported",
        [DENIED] = "Insufficient Permissions", [INSUFFICIENT_SIZE] = "Insufficient Size",
        [DRIVER_NOT_LOADED] = "Driver Not Loaded", [LOST] = "GPU is lost"};
    const char *text = code < sizeof texts / sizeof *texts ? texts[code] : NULL;
    return text ? text : "Unknown Error";
}

SYSTEM(nvmlSystemGetDriverVersion, (char *text, unsigned size),
       return copy_text(text, size, shared->driver_version))
SYSTEM(nvmlSystemGetNVMLVersion, (char *text, unsigned size),
       return copy_text(text, size, shared->nvml_version))
SYSTEM(nvmlSystemGetCudaDriverVersion, (int *version), *version = shared->cuda_version)
SYSTEM(nvmlSystemGetCudaDriverVersion_v2, (int *version), *version = shared->cuda_version)
SYSTEM(nvmlDeviceGetCount_v2, (unsigned *count), *count = shared->gpu_count)

/* ---- which device ----------------------------------------------------------------------- */

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    ENTER();
    if (index >= shared->gpu_count) return INVALID_ARGUMENT;
    *device = &shared->gpus[index];
    return touch(*device);
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
    ENTER();
    for (unsigned i = 0; uuid && i < shared->gpu_count; i++) {
        if (strcmp(uuid, shared->gpus[i].uuid)) continue;
        *device = &shared->gpus[i];
        return touch(*device);
    }
    return uuid ? NOT_FOUND : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetPciInfo_v3(void *device, pci_info *info) {
    ENTER_DEVICE();
    *info = (pci_info){.bus = g->pci_bus, .device_id = 0x233510de};
    snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", g->pci_bus & 0xff);
    snprintf(info->id, sizeof info->id, "00000000:%02X:00.0", g->pci_bus & 0xff);
    return OK;
}

DEVICE(nvmlDeviceGetUUID, (void *device, char *text, unsigned size),
       return copy_text(text, size, g->uuid))
DEVICE(nvmlDeviceGetName, (void *device, char *text, unsigned size),
       return copy_text(text, size, g->name))
GETTER(nvmlDeviceGetIndex, unsigned, g - shared->gpus)
PAIR_GETTER(nvmlDeviceGetCudaComputeCapability, int, 9, 0)

/* ---- readings --------------------------------------------------------------------------- */

static int clock_mhz(const gpu *g, unsigned type, unsigned id, unsigned *mhz) {
    if (type >= CLOCK_TYPES || id > 3) return INVALID_ARGUMENT;
    const unsigned now[] = {g->latched_sm_mhz, g->latched_sm_mhz, g->latched_memory_mhz, VIDEO_MHZ};
    const unsigned highest[] = {HIGHEST_MHZ, HIGHEST_MHZ, FAST_MEMORY_MHZ, VIDEO_MHZ};
    *mhz = id ? highest[type] : now[type];
    return OK;
}
DEVICE(nvmlDeviceGetClock, (void *device, unsigned type, unsigned id, unsigned *mhz),
       return clock_mhz(g, type, id, mhz))
DEVICE(nvmlDeviceGetClockInfo, (void *device, unsigned type, unsigned *mhz),
       return clock_mhz(g, type, 0, mhz))
DEVICE(nvmlDeviceGetMaxClockInfo, (void *device, unsigned type, unsigned *mhz),
       return clock_mhz(g, type, 3, mhz))

static unsigned reasons(const gpu *g) {
    return (g->load > 0 ? 0 : REASON_IDLE) | (capped(g) ? REASON_SW_POWER_CAP : 0)
        | (g->flags & HW_SLOWDOWN ? REASON_HW_SLOWDOWN : 0)
        | (g->flags & STUCK_SW_THERMAL ? REASON_SW_THERMAL : 0);
}
GETTER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, reasons(g))
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, reasons(g))

static int list_clocks(unsigned *count, unsigned *clocks, unsigned n, unsigned top, unsigned step) {
    unsigned room = *count;
    *count = n;
    if (room < n || !clocks) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) clocks[i] = top - i * step;
    return OK;
}

DEVICE(nvmlDeviceGetSupportedMemoryClocks, (void *device, unsigned *count, unsigned *clocks),
       return list_clocks(count, clocks, 2, FAST_MEMORY_MHZ, FAST_MEMORY_MHZ - SLOW_MEMORY_MHZ))
DEVICE(nvmlDeviceGetSupportedGraphicsClocks,
       (void *device, unsigned memory, unsigned *count, unsigned *clocks),
       if (memory != FAST_MEMORY_MHZ && memory != SLOW_MEMORY_MHZ) return NOT_FOUND;
       const unsigned n = (HIGHEST_MHZ - LOWEST_MHZ) / STEP_MHZ + 1;
       return list_clocks(count, clocks, n, HIGHEST_MHZ, STEP_MHZ))

GETTER(nvmlDeviceGetPowerUsage, unsigned, g->latched_power_mw)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, g->power_limit_mw)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, g->power_limit_mw)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned, g->default_power_limit_mw)
PAIR_GETTER(nvmlDeviceGetPowerManagementLimitConstraints, unsigned, g->min_power_limit_mw,
            g->max_power_limit_mw)
GETTER(nvmlDeviceGetPerformanceState, unsigned, idle(g) ? 8 : 0)
GETTER(nvmlDeviceGetComputeMode, unsigned, g->compute_mode)
GETTER(nvmlDeviceGetPersistenceMode, unsigned, !!(g->flags & PERSISTENCE))
PAIR_GETTER(nvmlDeviceGetEccMode, unsigned, !!(g->flags & ECC), !!(g->flags & ECC))
PAIR_GETTER(nvmlDeviceGetMigMode, unsigned, !!(g->flags & MIG), !!(g->flags & MIG))

DEVICE(nvmlDeviceGetTemperature, (void *device, unsigned sensor, unsigned *celsius),
       if (sensor) return INVALID_ARGUMENT;
       *celsius = g->temperature_c)
DEVICE(nvmlDeviceGetTemperatureV, (void *device, temperature_info *info),
       if (info->version != TEMPERATURE_V1) return VERSION_MISMATCH;
       if (info->sensor) return INVALID_ARGUMENT;
       info->temperature = (int)g->temperature_c)

static unsigned long long used_bytes(const gpu *g) {
    unsigned long long used = 0;
    for (unsigned i = 0; i < g->process_count; i++) used += g->processes[i].used_bytes;
    return used;
}

DEVICE(nvmlDeviceGetMemoryInfo, (void *device, memory_info *info),
       info->total = g->memory_bytes;
       info->used = used_bytes(g) + g->reserved_bytes;
       info->free = info->total - info->used)
DEVICE(nvmlDeviceGetMemoryInfo_v2, (void *device, memory_info_v2 *info),
       if (info->version != MEMORY_V2) return VERSION_MISMATCH;
       info->total = g->memory_bytes;
       info->reserved = g->reserved_bytes;
       info->used = used_bytes(g);
       info->free = info->total - info->used - info->reserved)
DEVICE(nvmlDeviceGetUtilizationRates, (void *device, utilization *rates),
       rates->gpu = (unsigned)(100 * g->load + 0.5);
       rates->memory = rates->gpu / 2)

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                                   process_info *list) {
    ENTER_DEVICE();
    if (g->flags & NO_SMI_PROCESSES) return DENIED;
    unsigned room = *count, n = g->process_count;
    *count = n;
    if (room < n || (n && !list)) return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < n; i++) {
        context *c = &g->processes[i];
        list[i] = (process_info){c->pid, c->used_bytes, 0xffffffffu, 0xffffffffu};
    }
    return OK;
}

/* Where a field's counter is; the thermal and brake counters moved with driver 580.82. */
static const uint64_t *counter(const gpu *g, uint32_t field) {
    unsigned major = 0, minor = 0;
    sscanf(shared->driver_version, "%u.%u", &major, &minor);
    uint32_t first = major > 580 || (major == 580 && minor >= 82) ? NEW_FIELDS : OLD_FIELDS;
    if (g->flags & UNSUPPORTED_FIELDS) return NULL;
    if (field == FIELD_SW_POWER_CAP) return &g->sw_power_cap_ns;
    if (field == FIELD_SYNC_BOOST) return &g->sync_boost_ns;
    const uint64_t *moved[] = {&g->sw_thermal_ns, &g->hw_thermal_ns, &g->power_brake_ns};
    return field - first < 3 ? moved[field - first] : NULL;
}

EXPORT int nvmlDeviceGetFieldValues(void *device, int count, field_value *values) {
    ENTER_DEVICE();
    if (count <= 0 || !values) return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        const uint64_t *found = counter(g, values[i].field);
        values[i].result = found ? OK : NOT_SUPPORTED;
        if (!found) continue;
        values[i].timestamp_us = (int64_t)(clock_ns(CLOCK_REALTIME) / 1000);
        values[i].latency_us = 0;
        values[i].type = 3; /* unsigned long long */
        values[i].value.ull = *found;
    }
    return OK;
}

/* ---- writes ----------------------------------------------------------------------------- */

static int check(const gpu *g, unsigned operation, unsigned a, unsigned b) {
    if (g->flags & NO_PERMISSION) return DENIED;
    if (operation == SET_POWER_LIMIT)
        return a < g->min_power_limit_mw || a > g->max_power_limit_mw ? INVALID_ARGUMENT : OK;
    return a > b ? INVALID_ARGUMENT : OK;
}

static void apply(gpu *g, unsigned operation, unsigned a, unsigned b) {
    switch (operation) {
    case SET_SM_LOCK: g->locked_min_mhz = snap(a), g->locked_max_mhz = snap(b); break;
    case RESET_SM_LOCK: g->locked_min_mhz = g->locked_max_mhz = 0; break;
    case SET_MEMORY_LOCK:
        g->mem_locked_min_mhz = snap_memory(a), g->mem_locked_max_mhz = snap_memory(b); break;
    case RESET_MEMORY_LOCK: g->mem_locked_min_mhz = g->mem_locked_max_mhz = 0; break;
    case SET_POWER_LIMIT: g->power_limit_mw = a; break;
    }
}

static int change(void *device, unsigned operation, unsigned a, unsigned b) {
    ENTER();
    gpu *g = find(device);
    if (!g) return INVALID_ARGUMENT;
    int code = touch(g);
    if (!code) code = check(g, operation, a, b);
    unsigned applied = !code && !(g->flags & REFUSE_SILENTLY);
    if (applied) apply(g, operation, a, b);
    shared->writes[shared->write_count++ % MAX_WRITES] =
        (written){operation, (unsigned)(g - shared->gpus), a, b, (unsigned)getpid(),
                  (unsigned)code, applied, 0};
    return code;
}

#define WRITE(name, parameters, ...) \
    EXPORT int name parameters { return change(device, __VA_ARGS__); }
WRITE(nvmlDeviceSetGpuLockedClocks, (void *device, unsigned a, unsigned b), SET_SM_LOCK, a, b)
WRITE(nvmlDeviceResetGpuLockedClocks, (void *device), RESET_SM_LOCK, 0, 0)
WRITE(nvmlDeviceSetMemoryLockedClocks, (void *device, unsigned a, unsigned b),
      SET_MEMORY_LOCK, a, b)
WRITE(nvmlDeviceResetMemoryLockedClocks, (void *device), RESET_MEMORY_LOCK, 0, 0)
WRITE(nvmlDeviceSetPowerManagementLimit, (void *device, unsigned mw), SET_POWER_LIMIT, mw, 0)
