// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_C_MGT_HPP
#define MGPU_PIPELINE_C_MGT_HPP

// mgt.h for C++17: handles that free themselves, and exceptions.
//
//   mgt::Builder builder("step", 2);
//   auto x = builder.argument("x", {16});
//   auto a = builder.temporary("a", 0, {8});
//   builder.copy(a, x.part({0}, {8}));
//   mgt::Program program = builder.open("host:2");

#include "mgt.h"

#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mgt {

/// A call that failed: the library's sentence, and the status.
class Error : public std::runtime_error {
public:
  explicit Error(mgt_status status)
      : std::runtime_error(mgt_error()), status(status) {}
  mgt_status status;
};
inline void check(mgt_status status) {
  if (status != MGT_OK)
    throw Error(status);
}

/// A program on its target.
class Program {
public:
  /// Opens a bundle.
  explicit Program(const std::string &path, const char *target = nullptr) {
    mgt_program *opened = nullptr;
    check(mgt_open(path.c_str(), target, &opened));
    handle.reset(opened);
  }
  /// The same with settings, as ranks of several processes.
  Program(const std::string &path, const char *target,
          const mgt_options &options) {
    mgt_program *opened = nullptr;
    check(mgt_open_with(path.c_str(), target, &options, &opened));
    handle.reset(opened);
  }
  /// Takes it over.
  explicit Program(mgt_program *opened) : handle(opened) {}

  mgt_program *get() const { return handle.get(); }
  template <typename T>
  void write(const char *name, const std::vector<T> &data) {
    check(mgt_write(get(), name, data.data(), data.size() * sizeof(T)));
  }
  template <typename T>
  void read(const char *name, std::vector<T> &data) {
    check(mgt_read(get(), name, data.data(), data.size() * sizeof(T)));
  }
  void load() { check(mgt_load(get())); }
  void replay() { check(mgt_replay(get())); }
  /// Queues one run into a cudaStream_t of the caller's and returns.
  void replay_on(void *stream) { check(mgt_replay_on(get(), stream)); }
  /// Begins a run beside the caller, until wait().
  void replay_begin() { check(mgt_replay_begin(get())); }
  void wait() { check(mgt_wait(get())); }
  /// Makes a run a part of what a cudaStream_t is being captured into.
  void capture_into(void *stream) { check(mgt_capture_into(get(), stream)); }
  /// Goes on as `next`, which becomes what this was.
  void swap(Program &next) { check(mgt_swap(get(), next.get())); }
  void fetch() { check(mgt_fetch(get())); }
  std::string explain() {
    const char *text = nullptr;
    check(mgt_explain(get(), &text));
    return text;
  }
  std::vector<mgt_node_time> times() {
    const mgt_node_time *first = nullptr;
    size_t count = 0;
    check(mgt_times(get(), &first, &count));
    return {first, first + count};
  }

private:
  struct Close {
    void operator()(mgt_program *program) const { mgt_close(program); }
  };
  std::unique_ptr<mgt_program, Close> handle;
};

/// A buffer or a part of one.
class View {
public:
  View(mgt_buffer buffer, std::vector<int64_t> shape)
      : buffer(buffer), sizes(std::move(shape)), strides(sizes.size(), 1) {
    for (size_t k = sizes.size(); k-- > 1;)
      strides[k - 1] = strides[k] * sizes[k];
  }
  /// From `first` on, `count` along each dimension.
  View part(const std::vector<int64_t> &first,
            const std::vector<int64_t> &count) const {
    View out = *this;
    for (size_t k = 0; k < first.size() && k < strides.size(); ++k)
      out.offset += first[k] * strides[k];
    out.sizes = count;
    return out;
  }
  /// Valid as long as this is.
  mgt_view get() const {
    return {buffer, offset, sizes.size(),
            sizes.empty() ? nullptr : sizes.data(),
            sizes.empty() ? nullptr : strides.data()};
  }
  mgt_buffer buffer;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

/// An argument of a launch: read(x), write(x), update(x), or a number.
struct Arg {
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Arg(T number) {
    constexpr bool isFloat = std::is_floating_point_v<T>;
    static_assert(sizeof(T) <= 8 && (!isFloat || sizeof(T) >= 4),
                  "a number of 1 to 8 bytes");
    type = std::is_same_v<T, bool> ? "i1"
           : isFloat               ? (sizeof(T) == 4 ? "f32" : "f64")
           : sizeof(T) == 1        ? "i8"
           : sizeof(T) == 2        ? "i16"
           : sizeof(T) == 4        ? "i32"
                                   : "i64";
    std::memcpy(&bits, &number, sizeof number); // little-endian
  }
  Arg(View view, int access)
      : access(access), view(std::make_shared<View>(std::move(view))) {}
  int access = 0;
  std::shared_ptr<View> view;
  const char *type = nullptr;
  uint64_t bits = 0;
};
inline Arg read(View view) { return {std::move(view), MGT_READ}; }
inline Arg write(View view) { return {std::move(view), MGT_WRITE}; }
inline Arg update(View view) { return {std::move(view), MGT_READ | MGT_WRITE}; }

/// Builds a program by calls; of mgt_builder_* it has those that are shorter
/// so, and get() for the rest.
class Builder {
public:
  explicit Builder(const char *name, uint32_t devices) {
    mgt_builder *made = nullptr;
    check(mgt_builder_new(name, devices, &made));
    handle.reset(made);
  }
  mgt_builder *get() const { return handle.get(); }

  View buffer(mgt_buffer_spec spec, const std::vector<int64_t> &shape) {
    spec.size = sizeof spec;
    spec.rank = shape.size();
    spec.shape = shape.data();
    mgt_buffer number = 0;
    check(mgt_builder_buffer(get(), &spec, &number));
    return View(number, shape);
  }
  View argument(const char *name, const std::vector<int64_t> &shape,
                const char *type = "f32", const char *role = nullptr) {
    return buffer(spec(name, MGT_ARGUMENT, MGT_HOST, type, role), shape);
  }
  View result(const char *name, const std::vector<int64_t> &shape,
              const char *type = "f32") {
    return buffer(spec(name, MGT_RESULT, MGT_HOST, type), shape);
  }
  View temporary(const char *name, int32_t device,
                 const std::vector<int64_t> &shape, const char *type = "f32") {
    return buffer(spec(name, MGT_TEMPORARY, device, type), shape);
  }
  View resident(const char *name, int32_t device,
                const std::vector<int64_t> &shape, const char *type = "f32") {
    return buffer(spec(name, MGT_RESIDENT, device, type), shape);
  }

  /// `spec.size` is set here.
  mgt_kernel kernel(mgt_kernel_spec spec) {
    spec.size = sizeof spec;
    mgt_kernel number = 0;
    check(mgt_builder_kernel(get(), &spec, &number));
    return number;
  }
  void launch(mgt_kernel kernel, int32_t device, std::vector<uint32_t> grid,
              const std::vector<Arg> &arguments) {
    std::vector<mgt_arg> args;
    for (const Arg &each : arguments)
      args.push_back({each.access, each.view ? each.view->get() : mgt_view{},
                      each.type, each.bits});
    grid.resize(3, 1);
    mgt_launch_spec spec{};
    spec.size = sizeof spec;
    spec.kernel = kernel;
    spec.device = device;
    std::memcpy(spec.grid, grid.data(), sizeof spec.grid);
    spec.num_args = args.size();
    spec.args = args.data();
    check(mgt_builder_launch(get(), &spec));
  }
  void copy(const View &destination, const View &source) {
    const mgt_view to = destination.get(), from = source.get();
    check(mgt_builder_copy(get(), &to, &from));
  }
  /// `spec.size` and the views are set here; without `receive` in place.
  void collective(mgt_collective_spec spec, const std::vector<View> &send,
                  const std::vector<View> &receive = {}) {
    std::vector<mgt_view> views[2];
    for (const View &each : send)
      views[0].push_back(each.get());
    for (const View &each : receive.empty() ? send : receive)
      views[1].push_back(each.get());
    if (views[0].size() != views[1].size())
      throw std::invalid_argument("as many views are sent as received");
    spec.size = sizeof spec;
    spec.num_members = send.size();
    spec.send = views[0].data();
    spec.receive = views[1].data();
    check(mgt_builder_collective(get(), &spec));
  }
  void allReduce(const std::vector<View> &views,
                 mgt_reduction reduction = MGT_SUM) {
    mgt_collective_spec spec{};
    spec.kind = MGT_ALL_REDUCE;
    spec.reduction = reduction;
    collective(spec, views);
  }

  Program open(const char *target = nullptr,
               const mgt_plan_options *options = nullptr) {
    mgt_program *program = nullptr;
    check(mgt_builder_open(get(), target, options, &program));
    return Program(program);
  }
  void save(const std::string &path,
            const mgt_save_options *options = nullptr) {
    check(mgt_builder_save(get(), path.c_str(), options));
  }

private:
  static mgt_buffer_spec spec(const char *name, int kind, int32_t device,
                              const char *type, const char *role = nullptr) {
    mgt_buffer_spec out{};
    out.name = name;
    out.kind = kind;
    out.device = device;
    out.type = type;
    out.role = role;
    return out;
  }
  struct Free {
    void operator()(mgt_builder *builder) const { mgt_builder_free(builder); }
  };
  std::unique_ptr<mgt_builder, Free> handle;
};

} // namespace mgt

#endif // MGPU_PIPELINE_C_MGT_HPP
