# Programs, cross-room tests, benchmarks, fuzz targets. The shared library and the installation are in SinewInstall.

configure_file(cmake/version.h.in generated/base/version.h @ONLY)
# Relative, so that an installed tree can be moved (SinewInstall).
set(SINEW_DATA_DESTINATION ${CMAKE_INSTALL_DATADIR}/sinew)
file(RELATIVE_PATH program_to_data /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${SINEW_DATA_DESTINATION})
file(RELATIVE_PATH library_to_data /prefix/${CMAKE_INSTALL_LIBDIR} /prefix/${SINEW_DATA_DESTINATION})
configure_file(cmake/install_layout.h.in generated/base/install_layout.h @ONLY)

if(EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.cc)
  add_executable(sinew src/cli/main.cc)
  sinew_link(sinew sinew_cli)
endif()

# What crosses rooms: tests/*_test.cc, one program. It may link any room and also run the program itself.
if(SINEW_BUILD_TESTS AND TARGET sinew)
  file(GLOB cross_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cc)
  if(cross_tests)
    add_executable(cross_test ${cross_tests})
    sinew_link(cross_test sinew_cli)
    target_link_libraries(cross_test PRIVATE GTest::gmock_main)
    target_compile_definitions(cross_test PRIVATE SINEW_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                                  SINEW_PROGRAM="$<TARGET_FILE:sinew>")
    add_dependencies(cross_test sinew)
    gtest_discover_tests(cross_test DISCOVERY_MODE PRE_TEST PROPERTIES LABELS cross)
  endif()
endif()

# Tests that change the process they run in, one program each: tests/isolated/<name>.cc. Not under sanitizers, which own malloc.
if(SINEW_BUILD_TESTS AND TARGET sinew AND NOT SINEW_SANITIZE)
  file(GLOB isolated_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/isolated/*_test.cc)
  foreach(source ${isolated_tests})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    sinew_link(${name} sinew_cli)
    target_link_libraries(${name} PRIVATE GTest::gtest_main ${CMAKE_DL_LIBS})
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS cross)
  endforeach()
  add_library(data_folder_probe MODULE tests/isolated/data_folder_probe.cc)
  sinew_link(data_folder_probe sinew_base)
  set_target_properties(data_folder_probe PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  add_dependencies(data_folder_library_test data_folder_probe)

  add_test(NAME assets.setup COMMAND bash ${PROJECT_SOURCE_DIR}/tests/assets/run.sh)
  set_tests_properties(assets.setup PROPERTIES LABELS cross TIMEOUT 300)
endif()

# Threads that share one thing, for ThreadSanitizer (make tsan): what it says of forks and of libgomp is of no use.
if(SINEW_BUILD_TESTS)
  add_executable(threads_test EXCLUDE_FROM_ALL src/base/thread_pool_test.cc src/plan/lock_test.cc
                                               src/plan/prepared_weights_test.cc src/plan/tier_concurrency_test.cc)
  sinew_link(threads_test sinew_plan)
  target_link_libraries(threads_test PRIVATE GTest::gmock_main)
endif()

# bench/<name>.cc becomes build/<preset>/bench/<name>; benchmark_main is the main() of those that have none.
if(SINEW_BUILD_BENCH)
  add_custom_target(benchmarks)
  file(GLOB benches CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cc)
  foreach(source ${benches})
    get_filename_component(name ${source} NAME_WE)
    add_executable(bench_${name} ${source})
    set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
                                                   RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    sinew_link(bench_${name} sinew_cli)
    target_link_libraries(bench_${name} PRIVATE benchmark::benchmark_main)
    target_compile_definitions(bench_${name} PRIVATE SINEW_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_dependencies(benchmarks bench_${name})
  endforeach()
endif()

# One fuzz target per parser of outside bytes: tests/fuzz/<name>_fuzz.cc with seeds in tests/fuzz/seeds/<name>/.
if(SINEW_FUZZ)
  add_custom_target(fuzz_targets)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cc)
  foreach(source ${fuzzers})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    sinew_link(${name} sinew_models_hamer sinew_hand)
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_targets ${name})
  endforeach()
endif()
