// What several verbs share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "image/crop.h"
#include "runtime/runtime.h"

namespace sinew::cli {

/// The words of --crop.
inline const std::vector<std::string> kCropWords = {"pillow", "opencv"};
/// Throws Error (kUsage) for another word.
CropKind parse_crop(const std::string& word);

/// "f32" -> Policy, "" -> nothing. Throws Error (kUsage) for another word.
std::optional<Policy> policy_option(const std::string& word);

/// The words of a list "a,b"; none of an empty one.
std::vector<std::string> words_of(const std::string& list);

/// check_box, but a box that does not fit its picture is a failure (kMismatch, exit status 1) that names the
/// file: the option itself could be understood.
void check_box_of(const std::string& path, const HandBox& box, const Image& frame);

/// Throws Error (kMismatch) that names the file, the tensor and the element unless all elements are finite.
void check_finite(const std::string& path, const std::string& name, const TensorView& view);

/// "message (hint)" on one line whatever bytes are in it.
std::string one_line(const Error& error);

/// File name without folders and last extension.
std::string stem_of(const std::string& path);
std::string file_name_of(const std::string& path);
/// Makes a folder and its parents. Throws Error (kIo).
void make_folder(const std::string& path);

}  // namespace sinew::cli
