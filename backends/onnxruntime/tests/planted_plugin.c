/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of ONNX Runtime that hands on to a real one, TARGET, and does one thing wrong.
 *
 * Of ONNX Runtime's structures it knows the first members alone, which never move: those of
 * OrtApiBase, of OrtApi, and of OrtEpFactory.
 */
#include <dlfcn.h>
#include <fenv.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct api {
    void *(*create_status)(int code, const char *text);
};

struct api_base {
    const struct api *(*get_api)(uint32_t version);
};

struct factory {
    uint32_t version;
    const char *(*get_name)(const struct factory *);
    const char *(*get_vendor)(const struct factory *);
    void *(*get_supported_devices)(
        struct factory *, const void *const *, size_t, void **, size_t, size_t *);
    void *(*create_ep)(
        struct factory *, const void *const *, const void *const *, size_t, const void *,
        const void *, void **);
};

typedef void *(*create_factories)(
    const char *, const struct api_base *, const void *, struct factory **, size_t, size_t *);

static const struct api *api;

#ifdef LARGE
__attribute__((used)) static const char large[LARGE] = {1};
#endif

#ifdef HANGS
static void *get_supported_devices(
    struct factory *self, const void *const *devices, size_t count, void **found, size_t most,
    size_t *number) {
    for (;;) pause();
}
#endif

#ifdef LIES
static void *create_ep(
    struct factory *self, const void *const *devices, const void *const *metadata, size_t count,
    const void *options, const void *logger, void **ep) {
    return api->create_status(1, "the device is only a drawing");
}
#endif

#ifdef CHANGES
static void *(*create_sound_ep)(
    struct factory *, const void *const *, const void *const *, size_t, const void *, const void *,
    void **);

static void *create_ep(
    struct factory *self, const void *const *devices, const void *const *metadata, size_t count,
    const void *options, const void *logger, void **ep) {
    fesetround(FE_UPWARD);
    return create_sound_ep(self, devices, metadata, count, options, logger, ep);
}
#endif

#ifndef NO_SYMBOL
void *CreateEpFactories(
    const char *name, const struct api_base *base, const void *logger, struct factory **factories,
    size_t most, size_t *number) {
    api = base->get_api(1);
#ifdef NEWER
    if (!base->get_api(999)) return api->create_status(1, "API version 999 is needed");
#endif
#ifdef CRASHES
    abort();
#endif
#ifdef WRITES
    printf("{\"look\": \"here\"}\n");
#endif
#ifdef CHANGES
    setenv("PLANTED", "1", 1);
    unsetenv("HOME");
    umask(0);
    signal(SIGUSR1, SIG_IGN);
    if (fesetround(FE_UPWARD) || chdir("/")) abort();
#endif
    void *target = dlopen(TARGET, RTLD_NOW | RTLD_LOCAL);
    if (!target) return api->create_status(1, dlerror());
    create_factories create = (create_factories)dlsym(target, "CreateEpFactories");
    void *status = create(name, base, logger, factories, most, number);
#ifdef HANGS
    if (!status) factories[0]->get_supported_devices = get_supported_devices;
#endif
#ifdef CHANGES
    if (!status) create_sound_ep = factories[0]->create_ep;
#endif
#if defined LIES || defined CHANGES
    if (!status) factories[0]->create_ep = create_ep;
#endif
    return status;
}

void *ReleaseEpFactory(struct factory *factory) {
    void *target = dlopen(TARGET, RTLD_NOW | RTLD_LOCAL);
    return ((void *(*)(struct factory *))dlsym(target, "ReleaseEpFactory"))(factory);
}
#else
int nothing(void) { return 0; }
#endif
