// Which files a command line means: files, folders, patterns.
#pragma once

#include <string>
#include <vector>

namespace sinew::cli {

/// A picture to read, and what its results are called: its file name without extension, made unique by a
/// number in front where two inputs share it ("0_x", "1_x").
struct Input {
  std::string path;
  std::string stem;
};

/// Files stay as they are, in order, whether they exist or not (opening them says more). A folder stands for
/// its *.jpg, *.jpeg, *.png (any case) by name, with `recursive` also those of the folders below; a name with
/// * ? [ ] that is no file stands for the paths that match it (glob(7)). The same path twice counts once.
/// Throws Error: kNotFound (a folder without pictures, a pattern that matches nothing, or a folder that
/// cannot be read).
std::vector<Input> expand_inputs(const std::vector<std::string>& words, bool recursive);

/// True when `folder` is one that pictures are read from as a whole: results written there would be inputs of
/// the next run.
bool is_input_folder(const std::vector<std::string>& words, const std::string& folder, bool recursive);

}  // namespace sinew::cli
