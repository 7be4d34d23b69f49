// A shared library with the code of base/data_folder in it, as libsinew.so has it; data_folder_library_test
// loads it.
#include <stdexcept>
#include <string>

#include "base/data_folder.h"

/// The folders, one a line, in `out`; returns how many.
extern "C" __attribute__((visibility("default"))) std::size_t probe_data_folders(char* out,
                                                                                 std::size_t capacity) {
  std::string text;
  const auto folders = sinew::data_folders();
  for (const std::string& folder : folders) text += folder + "\n";
  if (text.size() >= capacity) return 0;
  text.copy(out, text.size());
  out[text.size()] = '\0';
  return folders.size();
}
