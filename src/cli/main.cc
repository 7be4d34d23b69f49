#include "cli/command.h"

int main(int argc, char** argv) { return sinew::cli::main_program(argc, argv); }
