#include "models/hamer/program.h"

#include "base/error.h"
#include "models/hamer/builder.h"

namespace sinew::hamer {

Graph build(const Config& config, const Sources& sources, const BuildOptions& options) {
  if (options.u8_input && options.form == Form::kPlain) {
    throw Error(ErrorCode::kUnsupported,
                "8-bit input is folded into the patch weights, which the plain program does not do",
                "use the fused program, or normalised f32 input");
  }
  Builder builder(config, sources, options);
  if (options.form == Form::kFused) {
    build_fused(builder);
  } else {
    build_plain(builder);
  }
  return builder.finish();
}

}  // namespace sinew::hamer
