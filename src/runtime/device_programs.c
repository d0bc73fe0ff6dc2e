/* The list of the programs that a driver has loaded. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device_driver.h"
#include "runtime/runtime.h"

void* tw_find_program(const tw_loaded_program* programs, const void* context, const void* device, const char* source) {
  for (; programs; programs = programs->next) {
    if (programs->context == context && programs->device == device && strcmp(programs->source, source) == 0)
      return programs->handle;
  }
  return NULL;
}

int32_t tw_keep_program(tw_ctx* ctx, tw_loaded_program** programs, void* context, void* device, const char* source,
                        void* handle) {
  const size_t size = strlen(source) + 1;
  tw_loaded_program* entry = malloc(sizeof *entry);
  char* copy = entry ? malloc(size) : NULL;
  if (!copy) {
    free(entry);
    return tw_report(ctx, TW_ERROR_MEMORY, "no memory for a loaded program");
  }
  memcpy(copy, source, size);
  *entry = (tw_loaded_program){copy, context, device, handle, *programs};
  *programs = entry;
  return TW_OK;
}
