// sinew, the C++17 interface: sinew.h with owners, exceptions and defaults. Header-only; link libsinew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "sinew/sinew.h"

namespace sinew {
inline namespace api {  // apart from the library's own names, which a program that links its objects also has

/// what() is one line that names the file, tensor or field and, in brackets, what can be done about it.
class Error : public std::runtime_error {
 public:
  Error(sinew_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  sinew_status status() const noexcept { return status_; }

 private:
  sinew_status status_;
};

inline void check(sinew_status status) {
  if (status != SINEW_OK) throw Error(status, sinew_last_error());
}

/// "MAJOR.MINOR.PATCH" of the library that is loaded.
inline std::string version() { return sinew_version(); }

using Box = sinew_box;    // in pixels of the frame: x1, y1, x2, y2 (exclusive), is_right
using Hand = sinew_hand;  // rotmat, betas, cam, cam_t_full, joints: see sinew.h for shapes and units

struct HandsOptions {
  std::string policy;           // "f32", "bf16", "bfp8"; empty: the fastest that meets its accuracy bar
  int threads = 0;              // including the caller's; 0: as many as this process has CPUs
  std::string crop = "pillow";  // or "opencv"
  double rescale = 2.0;         // side of the crop relative to the box
  bool keep = false;            // prepared weights, so that the next start takes milliseconds
  std::string cache;            // where; empty: where the sinew program keeps them
};

/// An opened hand model: a picture and the box of a hand in, pose, shape and camera out. Used by one thread
/// at a time.
class Hands {
 public:
  /// `model_path`: a published folder, a .ckpt or a .safetensors file. Throws Error.
  explicit Hands(const std::string& model_path, const HandsOptions& options = {}) {
    if (sinew_abi_version() < SINEW_ABI_VERSION) {
      throw Error(SINEW_ERROR_UNSUPPORTED,
                  "libsinew " + version() + " is older than the header of this program");
    }
    sinew_hands_options c = {};
    c.struct_size = sizeof c;
    c.policy = options.policy.empty() ? nullptr : options.policy.c_str();
    c.threads = options.threads;
    c.crop = options.crop.c_str();
    c.rescale = options.rescale;
    c.cache = options.keep ? options.cache.c_str() : nullptr;
    sinew_hands* opened = nullptr;
    check(sinew_hands_open(model_path.c_str(), &c, &opened));
    hands_.reset(opened);
  }

  /// `rgb`: rows of `width` pixels of three bytes, `row_stride` bytes apart (0: no padding). Throws Error.
  Hand run(const std::uint8_t* rgb, int width, int height, const Box& box, std::ptrdiff_t row_stride = 0) {
    Hand hand = {};
    hand.struct_size = sizeof hand;
    check(sinew_hands_run(hands_.get(), rgb, width, height, row_stride, &box, &hand));
    return hand;
  }

 private:
  struct Close {
    void operator()(sinew_hands* hands) const noexcept { sinew_hands_close(hands); }
  };
  std::unique_ptr<sinew_hands, Close> hands_;
};

}  // namespace api
}  // namespace sinew
