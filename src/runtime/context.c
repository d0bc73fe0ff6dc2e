#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "runtime/device.h"
#include "runtime/runtime.h"

/* A context and the buffer that its error sink fills. */
typedef struct default_context {
  tw_ctx base;
  char message[2048];
} default_context;

static __thread default_context thread_context;

static void store_error(tw_ctx* ctx, int32_t code, const char* message) {
  (void)code;
  default_context* self = (default_context*)ctx;
  size_t length = strnlen(message, sizeof(self->message));
  if (length == sizeof(self->message)) {
    static const char kCut[] = "...";
    length = sizeof(self->message) - sizeof(kCut);
    memcpy(self->message, message, length);
    memcpy(self->message + length, kCut, sizeof(kCut));
  } else {
    memcpy(self->message, message, length + 1);
  }
}

static void drop_error(tw_ctx* ctx, int32_t code, const char* message) {
  (void)ctx;
  (void)code;
  (void)message;
}

void tw_ctx_init(tw_ctx* ctx) {
  memset(ctx, 0, sizeof(*ctx));
  ctx->abi_version = TW_ABI_VERSION;
  ctx->struct_size = sizeof(*ctx);
  ctx->parallel_for = tw_parallel_for;
  ctx->workspace_acquire = tw_workspace_acquire;
  ctx->workspace_release = tw_workspace_release;
  ctx->set_error = drop_error;
}

tw_ctx* tw_default_ctx(void) {
  tw_ctx* ctx = &thread_context.base;
  if (!ctx->abi_version) {
    tw_ctx_init(ctx);
    ctx->set_error = store_error;
  }
  return ctx;
}

const char* tw_last_error(void) { return thread_context.message; }

int32_t tw_report(tw_ctx* ctx, int32_t code, const char* message) {
  int32_t none = TW_OK;
  if (__atomic_compare_exchange_n(&ctx->error_code, &none, code, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    ctx->set_error(ctx, code, message);
  }
  return code;
}

int32_t tw_report_value(tw_ctx* ctx, int32_t code, const char* before, int64_t value, const char* after) {
  char message[1024];
  snprintf(message, sizeof message, "%s%lld%s", before, (long long)value, after);
  return tw_report(ctx, code, message);
}

int32_t tw_interrupted(tw_ctx* ctx) {
  /* The host may have been built before there was such a thing. */
  if (ctx->struct_size < offsetof(tw_ctx, interrupted) + sizeof(ctx->interrupted)) return TW_OK;
  if (!ctx->interrupted || !ctx->interrupted(ctx)) return TW_OK;
  return tw_report(ctx, TW_ERROR_INTERRUPTED, "the call was interrupted; what it wrote is incomplete");
}

void tw_pin_library(void) {
  Dl_info info;
  if (dladdr((void*)tw_pin_library, &info) && info.dli_fname) {
    /* One more reference that nobody drops; fails harmlessly for a program, which cannot be unloaded anyway. */
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

const tw_runtime_symbol* tw_runtime_symbols(int32_t* count) {
  static const tw_runtime_symbol symbols[] = {
      {"tw_default_ctx", (void*)tw_default_ctx},
      {"tw_check_args", (void*)tw_check_args},
      {"tw_fail_dim", (void*)tw_fail_dim},
      {"tw_report", (void*)tw_report},
      {"tw_last_error", (void*)tw_last_error},
      {"tw_interrupted", (void*)tw_interrupted},
      {"tw_report_value", (void*)tw_report_value},
      {"tw_device_enter", (void*)tw_device_enter},
      {"tw_device_leave", (void*)tw_device_leave},
      {"tw_device_acquire", (void*)tw_device_acquire},
      {"tw_device_release", (void*)tw_device_release},
      {"tw_device_launch", (void*)tw_device_launch},
      {"tw_device_launch_checked", (void*)tw_device_launch_checked},
  };
  *count = (int32_t)(sizeof(symbols) / sizeof(symbols[0]));
  return symbols;
}
