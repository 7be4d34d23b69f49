// The networks that find hands, from the data folder.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/backend.h"
#include "plan/policy.h"

namespace sinew {

/// MediaPipe's two sizes of both networks: full finds more, lite takes about 0.65 of the time.
enum class FinderSize : std::uint8_t { kFull, kLite };

struct FinderNetworks {
  std::unique_ptr<Session> palm;  // what HandFinder takes
  std::unique_ptr<Session> landmark;
  Policy policy = Policy::kF32;  // f32, on the reference backend f64
};

/// From palm_detection_{full,lite}.tflite and hand_landmark_{full,lite}.tflite in `folders` (data_folders()).
/// Throws Error: kNotFound (says how to get them), or as the reader, mediapipe::lower() and Backend::compile
/// do.
FinderNetworks open_finder_networks(Backend& backend, FinderSize size, std::span<const std::string> folders);
/// The same from these files.
FinderNetworks open_finder_networks(Backend& backend, const std::string& palm_path,
                                    const std::string& landmark_path);

}  // namespace sinew
