// The C ABI: versions and the last error.
#include "base/version.h"
#include "capi/guard.h"
#include "sinew/sinew.h"

int sinew_abi_version(void) { return SINEW_ABI_VERSION; }

const char* sinew_version(void) { return sinew::kVersion; }

const char* sinew_last_error(void) { return sinew::capi::remembered(); }
