// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs of a process have weights that they only read in common, also
// between bundles, and no program sees another's. Bundles from memory, whole
// and damaged, with weights that lie beside them. Usage: serve_memory FOLDER
#include "tests/serve/Weights.h"

#include <algorithm>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <malloc.h>
#include <random>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace {

constexpr int64_t numWeights = 4 << 20; // 16 MB
constexpr size_t weightBytes = size_t(numWeights) * sizeof(float);
constexpr size_t pageBytes = 4096;

/// A sanitizer keeps memory that was freed, and has more beside it.
#ifdef MGPU_SANITIZED
constexpr bool measures = false;
#else
constexpr bool measures = true;
#endif

/// Bytes of this process that are in memory, of these kinds.
size_t bytesOf(const std::vector<std::string> &kinds) {
  ::malloc_trim(0);
  std::ifstream file("/proc/self/smaps_rollup");
  size_t sum = 0, kilobytes = 0;
  for (std::string word; file >> word;)
    if (std::find(kinds.begin(), kinds.end(), word) != kinds.end() &&
        file >> kilobytes)
      sum += kilobytes << 10;
  REQUIRE(sum > 0);
  return sum;
}
/// That no other process has.
size_t privateBytes() { return bytesOf({"Private_Clean:", "Private_Dirty:"}); }
/// That are of no file, which others may map as well.
size_t anonymousBytes() { return bytesOf({"Anonymous:"}); }

Opened open(const std::string &path, const mgt_options *options = nullptr) {
  mgt_program *program = nullptr;
  OK(mgt_open_with(path.c_str(), nullptr, options, &program));
  return Opened(program);
}

/// Weights of which the sum is exact in f32.
std::vector<float> weightsOf(float value) {
  return std::vector<float>(numWeights, value);
}

/// Loads what is resident.
void start(mgt_program *program) {
  const float x[4] = {};
  OK(mgt_write(program, "x", x, sizeof x));
  OK(mgt_load(program));
}

void load(mgt_program *program, float weight) {
  const std::vector<float> weights = weightsOf(weight);
  OK(mgt_write(program, "w", weights.data(), weightBytes));
  start(program);
}

void check(mgt_program *program, float weight, float add) {
  const float x[4] = {1, 2, 3, 4};
  float y[4] = {};
  OK(mgt_write(program, "x", x, sizeof x));
  OK(mgt_replay(program));
  OK(mgt_read(program, "y", y, sizeof y));
  for (int k = 0; k < 4; ++k)
    REQUIRE(y[k] == expected(x[k], weight, numWeights, add));
}

/// Four workers take little more memory than one, of one bundle and of two.
void workers(const std::string &one, const std::string &other) {
  const size_t before = privateBytes();
  std::vector<Opened> programs(4);
  auto start = [&](size_t k) {
    std::thread([&] {
      programs[k] = open(k < 3 ? one : other);
      load(programs[k].get(), 0.5f);
      check(programs[k].get(), 0.5f, k < 3 ? 1.f : 2.f);
    }).join();
  };
  start(0);
  const size_t first = privateBytes() - before;
  REQUIRE(!measures || (first >= weightBytes && first < 2 * weightBytes));
  for (size_t k = 1; k < 4; ++k)
    start(k);
  const size_t all = privateBytes() - before;
  std::printf("private memory: %.1f MB of one worker, %.1f MB of four\n",
              double(first) / 1e6, double(all) / 1e6);
  REQUIRE(!measures || all <= first + 3 * (size_t(4) << 20));
  // Others have other weights, and nobody sees them.
  programs[1] = open(one);
  load(programs[1].get(), 0.25f);
  for (int round = 0; round < 2; ++round)
    for (size_t k = 0; k < 4; ++k)
      check(programs[k].get(), k == 1 ? 0.25f : 0.5f, k < 3 ? 1.f : 2.f);
  programs[0].reset(); // it made what others read
  check(programs[2].get(), 0.5f, 1);
  programs.clear();
  REQUIRE(!measures || privateBytes() < before + weightBytes / 2);
}

/// Memory that the caller was told of is his to write, whatever is shared, and
/// counts at the next mgt_load().
void inPlace(const std::string &path) {
  const Opened one = open(path), two = open(path);
  load(one.get(), 0.5f);
  load(two.get(), 0.5f);
  void *memory = nullptr;
  size_t bytes = 0;
  OK(mgt_memory(one.get(), "w", &memory, &bytes));
  REQUIRE(bytes == weightBytes && *static_cast<float *>(memory) == 0.5f);
  std::fill_n(static_cast<float *>(memory), numWeights, 0.25f);
  check(one.get(), 0.5f, 1); // not loaded yet
  OK(mgt_load(one.get()));
  check(one.get(), 0.25f, 1);
  check(two.get(), 0.5f, 1);
  std::fill_n(static_cast<float *>(memory), numWeights, 0.5f);
  OK(mgt_load(one.get()));
  check(one.get(), 0.5f, 1);
  std::vector<float> bound = weightsOf(0.125f);
  OK(mgt_bind(two.get(), "w", bound.data(), weightBytes));
  OK(mgt_load(two.get()));
  check(two.get(), 0.125f, 1);
  std::fill(bound.begin(), bound.end(), 0.25f);
  OK(mgt_load(two.get()));
  check(two.get(), 0.25f, 1);
  std::vector<float> read(numWeights);
  OK(mgt_read(two.get(), "w", read.data(), weightBytes));
  REQUIRE(read.back() == 0.25f);
}

std::vector<char> contentsOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

mgt_status openMemory(const std::vector<char> &bytes,
                      const mgt_options *options, Opened &out) {
  mgt_program *program = nullptr;
  // As many bytes and no more, so that a sanitizer sees who reads on.
  const auto copy = std::make_unique<char[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  const mgt_status status =
      mgt_open_memory(copy.get(), bytes.size(), nullptr, options, &program);
  REQUIRE((program != nullptr) == (status == MGT_OK));
  out.reset(program);
  return status;
}

void fromMemory(const std::string &path) {
  std::vector<char> bytes = contentsOf(path);
  Opened program;
  OK(openMemory(bytes, nullptr, program));
  mgt_facts facts{}, ofFile{};
  facts.size = ofFile.size = sizeof facts;
  OK(mgt_get_facts(program.get(), &facts));
  const Opened file = open(path);
  OK(mgt_get_facts(file.get(), &ofFile));
  REQUIRE(std::strcmp(facts.hash, ofFile.hash) == 0);
  load(program.get(), 0.5f);
  check(program.get(), 0.5f, 1);
  mgt_program *none = nullptr;
  FAILS(mgt_open_memory(nullptr, 5, nullptr, nullptr, &none), MGT_USAGE,
        "null");
  FAILS(mgt_open_memory(bytes.data(), 0, nullptr, nullptr, &none), MGT_USAGE,
        "bytes");
  FAILS(mgt_open_memory("hello", 5, nullptr, nullptr, &none), MGT_INVALID,
        "bundle in memory");
  // Cut anywhere, and with any byte changed: an error or the same program.
  std::minstd_rand random(1);
  Opened other;
  for (int k = 0; k < 60; ++k) {
    std::vector<char> cut(bytes.begin(),
                          bytes.begin() + ptrdiff_t(random() % bytes.size()));
    REQUIRE(cut.empty() || openMemory(cut, nullptr, other) != MGT_OK);
    std::vector<char> lying = bytes;
    lying[k < 30 ? k : random() % bytes.size()] ^= char(1 << random() % 8);
    if (openMemory(lying, nullptr, other) == MGT_OK) {
      OK(mgt_get_facts(other.get(), &facts));
      REQUIRE(std::strcmp(facts.hash, ofFile.hash) == 0);
    }
  }
  bytes[18] = bytes[19] = 2; // a log beside it, which memory has not
  FAILS(openMemory(bytes, nullptr, other), MGT_INVALID, "damaged");
}

/// A file of weights that is mapped, with `shift` bytes before them.
class Mapped {
public:
  Mapped(const std::string &path, size_t shift, float value)
      : bytes(shift + weightBytes) {
    const std::vector<float> weights = weightsOf(value);
    std::ofstream file(path, std::ios::binary);
    file.write(std::string(shift, '\0').data(), std::streamsize(shift));
    file.write(reinterpret_cast<const char *>(weights.data()), weightBytes);
    file.close();
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    memory = static_cast<char *>(
        ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0));
    ::close(descriptor);
    REQUIRE(memory != MAP_FAILED);
  }
  ~Mapped() { ::munmap(memory, bytes); }
  char *memory;

private:
  size_t bytes;
};

mgt_options with(const std::vector<mgt_input> &constants) {
  mgt_options options{};
  options.size = sizeof options;
  options.num_constants = constants.size();
  options.constants = constants.data();
  return options;
}

/// Weights beside the bundle: where they lie, if they lie well; a program that
/// writes has its own.
void beside(const std::string &path, const std::string &folder) {
  for (const size_t shift : {size_t(0), size_t(4)}) {
    const Mapped file(folder + "/weights.bin", shift, 0.5f);
    const std::vector<mgt_input> constants{
        {"w", file.memory + shift, weightBytes}};
    const mgt_options options = with(constants);
    const size_t before = anonymousBytes();
    Opened program = open(path, &options), other = open(path, &options), third;
    OK(openMemory(contentsOf(path), &options, third));
    load(other.get(), 0.25f);
    start(program.get());
    start(third.get());
    check(program.get(), 0.5f, 1);
    check(other.get(), 0.25f, 1);
    check(third.get(), 0.5f, 1);
    // One of its own that was written, and none or one of the two others.
    const size_t taken = anonymousBytes() - before,
                 most = (shift == 0 ? 1 : 2) * weightBytes + (4 << 20);
    std::printf("memory of no file: %.1f MB of three, weights beside\n",
                double(taken) / 1e6);
    REQUIRE(!measures || taken < most);
    void *memory = nullptr;
    size_t bytes = 0;
    OK(mgt_memory(program.get(), "w", &memory, &bytes));
    std::fill_n(static_cast<float *>(memory), numWeights, 0.125f);
    OK(mgt_load(program.get()));
    check(program.get(), 0.125f, 1);
    check(third.get(), 0.5f, 1);
  }
  const std::vector<float> weights = weightsOf(0.5f), others = weightsOf(0.25f);
  { // the last one counts, and the caller's memory stays as it is
    const std::vector<mgt_input> twice{{"w", weights.data(), weightBytes},
                                       {"w", others.data(), weightBytes}};
    const mgt_options options = with(twice);
    const Opened program = open(path, &options);
    start(program.get());
    check(program.get(), 0.25f, 1);
    REQUIRE(weights == weightsOf(0.5f) && others == weightsOf(0.25f));
  }
  const std::vector<std::pair<mgt_input, const char *>> wrong{
      {{"v", weights.data(), weightBytes}, "no argument 'v'"},
      {{"w", weights.data(), weightBytes - 4}, "'w' has"},
      {{"w", nullptr, weightBytes}, "none"},
      {{nullptr, weights.data(), weightBytes}, "null"},
      {{"x", weights.data(), 16}, "'x' is not resident but input"},
      {{"w", reinterpret_cast<const char *>(weights.data()) + 1, weightBytes},
       "multiple of the 4 bytes"}};
  for (const auto &[constant, words] : wrong) {
    const std::vector<mgt_input> constants{constant};
    const mgt_options options = with(constants);
    mgt_program *program = nullptr;
    FAILS(mgt_open_with(path.c_str(), nullptr, &options, &program), MGT_USAGE,
          words);
    REQUIRE(!program);
  }
  mgt_options options = with({});
  options.num_constants = 1, options.constants = nullptr;
  mgt_program *program = nullptr;
  FAILS(mgt_open_with(path.c_str(), nullptr, &options, &program), MGT_USAGE,
        "constants");
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  const std::string folder = argv[1], one = folder + "/one.mgpu",
                    other = folder + "/other.mgpu";
  saveWeights(one, numWeights, 1);
  saveWeights(other, numWeights, 2);
  workers(one, other);
  inPlace(one);
  fromMemory(one);
  beside(one, folder);
  std::printf("programs have weights in common, and values of their own\n");
}
