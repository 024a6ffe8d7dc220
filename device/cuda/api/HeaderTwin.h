// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_HEADERTWIN_H
#define MGPU_DEVICE_CUDA_API_HEADERTWIN_H

// Compares what a table of ours (NcclApi.h and others) declares with the header
// of the library, where that is installed.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mgpu::device {

template <typename Ours, typename Theirs>
constexpr bool isEqual(Ours ours, Theirs theirs) {
  return sizeof(Ours) == sizeof(Theirs) && uint32_t(ours) == uint32_t(theirs);
}

/// Our twin of one of their types in a parameter list of the table `Api`.
template <typename Api, typename T>
struct Twin {
  using Type = T;
};
template <typename Api, typename T>
struct Twin<Api, T *> {
  using Type = typename Twin<Api, T>::Type *;
};
template <typename Api, typename T>
struct Twin<Api, const T> {
  using Type = const typename Twin<Api, T>::Type;
};

template <typename Api, typename F>
struct TwinOf;
template <typename Api, typename R, typename... P>
struct TwinOf<Api, R (*)(P...)> {
  using Type = typename Twin<Api, R>::Type (*)(typename Twin<Api, P>::Type...);
};

/// An enumerator has their size and value.
#define MGPU_EQUAL(ours, theirs) static_assert(isEqual(ours, theirs))
/// A member lies where theirs does.
#define MGPU_SAME_OFFSET(Ours, ours, Theirs, theirs)                           \
  static_assert(offsetof(Ours, ours) == offsetof(Theirs, theirs))
#define MGPU_TWIN(Api, Theirs, Ours)                                           \
  template <>                                                                  \
  struct Twin<Api, Theirs> {                                                   \
    using Type = Ours;                                                         \
  }
/// A function of the table has the parameters of their declaration.
#define MGPU_SAME_CALL(Api, ours, theirs)                                      \
  static_assert(std::is_same_v<decltype(Api::ours),                            \
                               TwinOf<Api, decltype(&theirs)>::Type>)

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_HEADERTWIN_H
