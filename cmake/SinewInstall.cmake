# The shared library (the C ABI of include/sinew/sinew.h) and the installation: program, library, headers, find_package
# and pkg-config files. Consumers get the include path and libsinew.so; what it is made of stays behind its DT_NEEDED.

add_library(sinew_shared SHARED)
sinew_link(sinew_shared sinew_capi)
target_include_directories(sinew_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# SOVERSION changes only when a function or a field goes away or changes; SINEW_ABI_VERSION counts additions.
set_target_properties(sinew_shared PROPERTIES OUTPUT_NAME sinew EXPORT_NAME sinew VERSION ${PROJECT_VERSION} SOVERSION 0
                                              LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
# Hidden visibility does not reach templates of fmt and spdlog, which say "default" themselves; the map does.
target_link_options(sinew_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
if(NOT SINEW_SANITIZE) # the sanitizers' runtime is linked into programs only
  target_link_options(sinew_shared PRIVATE -Wl,-z,defs)
endif()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sinew)
if(TARGET sinew)
  install(TARGETS sinew RUNTIME)
endif()
install(TARGETS sinew_shared EXPORT sinewTargets LIBRARY)
install(FILES include/sinew/sinew.h include/sinew/sinew.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sinew)
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
configure_file(cmake/install_data.cmake.in install_data.cmake @ONLY)
install(SCRIPT ${PROJECT_BINARY_DIR}/install_data.cmake)
# The library depends on nothing a consumer would have to find, so its targets file is the whole package configuration.
install(EXPORT sinewTargets FILE sinewConfig.cmake NAMESPACE sinew:: DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sinewConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sinewConfigVersion.cmake DESTINATION ${package_dir})

# Relative to the .pc file's own folder, so that `cmake --install --prefix` and moving the tree both work.
file(RELATIVE_PATH pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/sinew.pc.in sinew.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sinew.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(SINEW_BUILD_TESTS AND NOT SINEW_SANITIZE AND TARGET sinew)
  add_test(NAME install.consumers
           COMMAND bash ${PROJECT_SOURCE_DIR}/tests/install/run.sh ${PROJECT_BINARY_DIR} ${CMAKE_CXX_COMPILER})
  set_tests_properties(install.consumers PROPERTIES LABELS install TIMEOUT 300)
endif()
