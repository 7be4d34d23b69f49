// TFLite networks compiled on a backend.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "io/tflite.h"
#include "plan/policy.h"

namespace sinew {

/// A session of `file`'s graph (models/mediapipe/graph.h names its inputs and outputs), its weights resident.
/// Throws Error as mediapipe::lower and Backend::compile do.
std::unique_ptr<Session> compile_tflite(const std::shared_ptr<const TfliteFile>& file, Backend& backend,
                                        Policy policy);

/// open_tflite and compile_tflite. Sessions of one backend share its threads.
std::unique_ptr<Session> open_tflite_session(const std::string& path, Backend& backend, Policy policy);

}  // namespace sinew
