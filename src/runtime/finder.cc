#include "runtime/finder.h"

#include "base/data_folder.h"
#include "runtime/mediapipe.h"

namespace sinew {

FinderNetworks open_finder_networks(Backend& backend, FinderSize size, std::span<const std::string> folders) {
  const std::string ending = size == FinderSize::kLite ? "_lite.tflite" : "_full.tflite";
  // Both are looked for before either is read, so that a missing one is told at once.
  const std::string palm = find_asset("palm_detection" + ending, folders);
  const std::string landmark = find_asset("hand_landmark" + ending, folders);
  return open_finder_networks(backend, palm, landmark);
}

FinderNetworks open_finder_networks(Backend& backend, const std::string& palm_path,
                                    const std::string& landmark_path) {
  FinderNetworks networks;
  networks.policy = backend.name() == "reference" ? Policy::kF64 : Policy::kF32;
  networks.palm = open_tflite_session(palm_path, backend, networks.policy);
  networks.landmark = open_tflite_session(landmark_path, backend, networks.policy);
  return networks;
}

}  // namespace sinew
