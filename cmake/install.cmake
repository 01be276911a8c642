# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where: library, header, CMake package, pkg-config file, program, its data, man page.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/clattn)

install(TARGETS clattn EXPORT clattnTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/clattn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT clattnTargets NAMESPACE clattn:: DESTINATION ${package_dir})

configure_package_config_file(cmake/clattnConfig.cmake.in ${PROJECT_BINARY_DIR}/clattnConfig.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/clattnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/clattnConfig.cmake ${PROJECT_BINARY_DIR}/clattnConfigVersion.cmake
    DESTINATION ${package_dir})

# A static library hands its own needs on to whoever links it.
set(pc_cflags "")
set(pc_static "")
set(pc_private "")
foreach(library IN LISTS CLATTN_MATH CMAKE_THREAD_LIBS_INIT CMAKE_DL_LIBS)
    if(library MATCHES "^-")
        string(APPEND pc_private " ${library}")
    else()
        string(APPEND pc_private " -l${library}")
    endif()
endforeach()
if(NOT BUILD_SHARED_LIBS)
    set(pc_cflags " -DCLATTN_STATIC")
    set(pc_static "${pc_private}")
    set(pc_private "")
endif()
configure_file(cmake/clattn.pc.in ${PROJECT_BINARY_DIR}/clattn.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/clattn.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(CLATTN_BUILD_TOOLS)
    install(TARGETS clattn_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    install(DIRECTORY tests/data/minilm DESTINATION ${CMAKE_INSTALL_DATADIR}/clattn)
    install(FILES docs/clattn.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
