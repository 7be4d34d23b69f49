# Everything comes from the distribution (tools/setup.sh names the packages) and is linked, not vendored.
find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(spdlog REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(ZLIB REQUIRED)
find_package(simdjson REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# Headers only, both. SYSTEM: their own warnings are not ours.
find_path(EIGEN3_INCLUDE_DIR Eigen/Core PATH_SUFFIXES eigen3 REQUIRED)
add_library(sinew_eigen INTERFACE)
target_include_directories(sinew_eigen SYSTEM INTERFACE ${EIGEN3_INCLUDE_DIR})
# flatc turns src/io/tflite.fbs into <io/tflite_schema.h> at build time; whoever links sinew_flatbuffers waits for it.
find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)
find_program(FLATC flatc REQUIRED)
set(schema_folder ${PROJECT_BINARY_DIR}/generated_system)
add_custom_command(OUTPUT ${schema_folder}/io/tflite_schema.h
                   COMMAND ${FLATC} --cpp --scoped-enums --filename-suffix _schema -o ${schema_folder}/io
                           ${PROJECT_SOURCE_DIR}/src/io/tflite.fbs
                   DEPENDS ${PROJECT_SOURCE_DIR}/src/io/tflite.fbs VERBATIM)
add_custom_target(sinew_schemas DEPENDS ${schema_folder}/io/tflite_schema.h)
add_library(sinew_flatbuffers INTERFACE)
add_dependencies(sinew_flatbuffers sinew_schemas)
target_include_directories(sinew_flatbuffers SYSTEM INTERFACE ${FLATBUFFERS_INCLUDE_DIR} ${schema_folder})
# Debian's dnnl-config.cmake asks for the OpenCL headers, which only its GPU engine needs: look for the library itself.
find_path(DNNL_INCLUDE_DIR dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(sinew_dnnl INTERFACE)
add_library(DNNL::dnnl ALIAS sinew_dnnl)
target_include_directories(sinew_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
# libgomp, which the library is built on, is asked to make serial primitives (src/backend/cpu/gemm_onednn.cc).
target_link_libraries(sinew_dnnl INTERFACE ${DNNL_LIBRARY} -l:libgomp.so.1)
if(SINEW_BUILD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
  enable_testing()
endif()
if(SINEW_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()
