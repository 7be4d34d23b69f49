// Where the files lie that set-up fetches (tools/assets.sh): the hand networks and the built-in hand.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sinew {

/// For the edges (command line, C ABI), which pass it down: the folders that may hold them, in the order of
/// looking; they need not exist. $SINEW_DATA alone when set and not empty: who names a folder gets no other.
/// Otherwise `../data` as seen from the file that this code was loaded from, be it the program or libsinew.so
/// (build/data, from build/release), then the folder of an installed sinew (share/sinew).
std::vector<std::string> data_folders();

/// The last two of the above for code loaded from the file `module`; `to_installed` leads from its folder to
/// the installed data folder.
std::vector<std::string> data_folders_of(const std::string& module, const std::string& to_installed);

/// The path of the file `name` in the first of `folders` that has it. Throws Error (kNotFound) that names the
/// file and each folder, with a hint how to get it. A hash is not taken here: set-up has checked the file,
/// and its reader checks what it says.
std::string find_asset(const std::string& name, std::span<const std::string> folders);

/// The hint for an asset that is missing or damaged: how to have it fetched (again), or to name another
/// folder.
inline constexpr const char* kAssetHint =
    "`make assets` in sinew's source folder fetches it from npm; SINEW_DATA=FOLDER names another folder";

}  // namespace sinew
