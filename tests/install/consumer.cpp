#include <iostream>
#include <sinew/sinew.hpp>

int main() {
  try {
    sinew::Hands hands("missing/model.ckpt");
  } catch (const sinew::Error& error) {
    std::cout << "sinew " << sinew::version() << ", status " << error.status() << ": " << error.what()
              << "\n";
    return error.status() == SINEW_ERROR_NOT_FOUND ? 0 : 1;
  }
  return 1;
}
