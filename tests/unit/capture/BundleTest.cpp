// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/replay/Bundle.h"

#include "TestProgram.h"
#include "capture/replay/Replayer.h"
#include "device/host/HostDriver.h"
#include "planner/dag/ProgramText.h"
#include "planner/plan/Verify.h"
#include "support/FileIO.h"
#include "support/Sha256.h"
#include "tests/unit/db/TempFolder.h"

#include <gtest/gtest.h>
#include <random>

namespace {

using namespace mgpu;
using namespace mgpu::capture;
using db::TempFolder;
using planner::BufferId;

using namespace std::string_literals;

constexpr std::string_view allLevels[] = {"x86-64-v4", "x86-64-v3",
                                          "x86-64-v2"};

void addUses(planner::DagNode &node) {
  auto use = [&](BufferId buffer, const Box &box, bool reads, bool writes) {
    node.uses.push_back({buffer, box, reads, writes});
  };
  if (auto *copy = std::get_if<planner::CopyCall>(&node.work)) {
    use(copy->source, copy->sourceBox, true, false);
    use(copy->destination, copy->destinationBox, false, true);
  } else if (auto *call = std::get_if<planner::CollectiveCall>(&node.work)) {
    for (const planner::CollectiveMember &member : call->members) {
      use(member.send, member.sendBox, true, false);
      use(member.recv, member.recvBox, false, true);
    }
  } else if (auto *launch = std::get_if<planner::KernelCall>(&node.work)) {
    Box all = Box::flat(0, half * 4);
    use(std::get<BufferId>(launch->arguments[0].value), all, true, true);
    use(std::get<BufferId>(launch->arguments[1].value), all, true, false);
  }
}

/// Every member is unlike what it is by default.
kernels::KernelSpace makeSpace() {
  using P = kernels::KernelParameter;
  kernels::KernelSpace space;
  space.target = kernels::KernelTarget::Cuda;
  space.block = {4, 1, 1};
  space.maxGrid = {7, 3, 2};
  space.reshapable = true;
  space.reason = "why \"not\"";
  space.covers = {kernels::Formula(P::BlockX) * P::TileX,
                  kernels::Formula(P::BlockY) * P::TileY, P::BlockZ};
  space.sharedBytes = (kernels::Formula(48) + P::TileX).roundedUp(16);
  space.sharedIsDynamic = true;
  space.defaults.values = {32, 2, 1, 1, 1, 1, 1, 2, 2, 1};
  space.offerDefaults("there is one");
  space.offer(P::BlockX, {32, 64});
  space.offer(P::BlockY, {1, 2});
  space.offer(P::Items, {1, 2});
  space.offer(P::TileX, {1, 2});
  space.offer(P::TileY, {1, 2});
  space.addTunable({"DEPTH", {16, 8}});
  space.addTunable({"STAGES", {2, 3}});
  space.require("a rule", kernels::Formula::tunable(1) * 3,
                kernels::Relation::MultipleOf, -1, "a reason");
  space.constraints.back().bindsDefaults = true;
  return space;
}

/// Two ways: with vectors as LLVM likes, and with none.
kernels::KernelSpace makeHostSpace() {
  using P = kernels::KernelParameter;
  kernels::KernelSpace space;
  space.block = {4, 1, 1};
  space.maxGrid = {7, 1, 1};
  space.reason = "its own";
  space.defaults[P::BlockX] = 4;
  space.offerDefaults("there is one");
  space.offer(P::Vector, {0, 1});
  return space;
}

BundleContents makeContents() {
  TestProgram test = makeTestProgram(MGPU_TEST_KERNEL);
  BundleContents contents;
  contents.origin = {"main", "a.mlir", "hash", "0.1", "arg n=6\n", ""};
  contents.program.dag = std::move(test.dag);
  planner::Dag &dag = contents.program.dag;
  dag.kernels[0].source = planner::MlirKernel{"module {}"};
  for (planner::DagNode &node : dag.nodes)
    addUses(node);
  using Role = planner::ArgumentRole;
  contents.program.arguments = {
      {"x", Role::Resident, ElementType::F32, {2 * half}, BufferId{0}, ""},
      {"y", Role::InOut, ElementType::F32, {2 * half}, BufferId{1}, ""},
      {"n", Role::Specialised, ElementType::Index, {}, {}, "6"}};
  contents.program.results = {
      {"r0", Role::Output, ElementType::F32, {half}, BufferId{2}, ""}};
  contents.plan = std::move(test.plan);
  KernelForms forms;
  forms.host["x86-64-v2"] = test.kernels[0];
  forms.host["x86-64-v3"] = test.kernels[0];
  forms.host["x86-64-v3"].push_back(std::byte(0)); // after the ELF file
  forms.hostSpace = makeHostSpace();
  for (const kernels::KernelConfig &config : forms.hostSpace->legal())
    if (config != forms.hostSpace->defaults)
      for (const auto &[level, object] : forms.host) {
        auto &way = forms.alternatives[level][config] = object;
        way.push_back(std::byte(7));
      }
  kernels::CudaText cuda;
  cuda.name = "axpy_kernel0";
  cuda.image.entry = "axpy";
  cuda.image.blob = "extern \"C\" \0 void"s;
  cuda.reason = "why \"not\"";
  cuda.image.sourceBlock = {4, 1, 1};
  cuda.image.block = {32, 2, 1};
  cuda.image.covers = {64, 4, 1};
  cuda.reshapable = true;
  cuda.image.takesPart = false;
  cuda.image.dynamicSharedBytes = 12;
  cuda.image.awaits = true;
  cuda.image.parameterBytes = {8, 4, 128};
  cuda.image.arch = "sm_90a";
  kernels::MatrixProduct product;
  product.factors = ElementType::BF16;
  product.m = 20;
  product.n = 30;
  product.k = 40;
  product.batch = 2;
  product.matrices = {{{1, 8, 40, 800}, {2, 0, 30, 1200}, {0, 3, 33, 660}}};
  cuda.image.product = product;
  cuda.image.tensorMaps = {
      {2, 32, ElementType::BF16, {40, 20, 3}, {96, 1920}, {64, 64, 1}}};
  cuda.space = makeSpace();
  forms.cuda = std::move(cuda);
  forms.cubins["sm_90"] = {std::byte(1), std::byte(2)};
  contents.kernels.push_back(std::move(forms));
  return contents;
}

Bundle reopen(const std::string &path) {
  auto bundle = Bundle::open(path);
  EXPECT_TRUE(bundle) << bundle.error().message;
  return std::move(*bundle);
}

TEST(Bundle, HoldsWhatWasPutIn) {
  TempFolder folder;
  BundleContents contents = makeContents();
  contents.own = {{{"sm_80", "aa"}, {std::byte(1)}},
                  {{"sm_90", "aa"}, {std::byte(2), std::byte(3)}},
                  {{"sm_90", "bb"}, {std::byte(1)}}};
  ASSERT_TRUE(contents.program.check())
      << contents.program.check().error().message;
  auto written = writeBundle(folder / "x.mgpu", contents);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_TRUE(db::isDatabaseFile(folder / "x.mgpu"));
  Bundle bundle = reopen(folder / "x.mgpu");
  auto own = bundle.ownCubins();
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(*own, contents.own);
  EXPECT_TRUE(bundle.verify());
  EXPECT_TRUE(bundle.program() == contents.program);
  auto plan = bundle.plan();
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(planner::toText(*plan, bundle.program().dag),
            planner::toText(contents.plan, contents.program.dag));
  EXPECT_EQ(bundle.origin().source, "a.mlir");
  EXPECT_EQ(bundle.origin().options, "arg n=6\n");
  auto texts = bundle.cudaTexts();
  ASSERT_TRUE(texts) << texts.error().message;
  EXPECT_EQ(texts->at(0), *contents.kernels[0].cuda);
  auto cubins = bundle.cubins("sm_90");
  ASSERT_TRUE(cubins) << cubins.error().message;
  EXPECT_EQ(cubins->at(0), contents.kernels[0].cubins["sm_90"]);
  auto kernels = bundle.hostKernels(allLevels);
  ASSERT_TRUE(kernels) << kernels.error().message;
  EXPECT_EQ(kernels->level, "x86-64-v3") << "the best there is";
  EXPECT_EQ(kernels->objects[0], contents.kernels[0].host["x86-64-v3"]);
}

TEST(Bundle, HoldsAlternatives) {
  TempFolder folder;
  BundleContents contents = makeContents();
  KernelForms &forms = contents.kernels[0];
  ASSERT_TRUE(writeBundle(folder / "x", contents));
  Bundle bundle = reopen(folder / "x");
  auto spaces = bundle.hostSpaces();
  ASSERT_TRUE(spaces) << spaces.error().message;
  ASSERT_TRUE(*spaces);
  EXPECT_EQ((*spaces)->at(0), *forms.hostSpace);
  const kernels::KernelConfig other =
      forms.alternatives["x86-64-v3"].begin()->first;
  auto object = bundle.hostKernel(0, "x86-64-v3", other);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(*object, forms.alternatives["x86-64-v3"].begin()->second);
  EXPECT_TRUE(bundle.verify());

  forms.alternatives["x86-64-v2"].clear();
  ASSERT_TRUE(writeBundle(folder / "x", contents));
  bundle = reopen(folder / "x");
  auto lacks = bundle.verify();
  ASSERT_FALSE(lacks);
  EXPECT_EQ(lacks.error().kind, ErrorKind::Invalid);
  EXPECT_NE(lacks.error().message.find("has no kernel 'axpy' for x86-64-v2 "
                                       "with block_x=4"),
            std::string::npos)
      << lacks.error().message;
  EXPECT_FALSE(bundle.hostKernel(0, "x86-64-v2", other));

  forms.hostSpace->block = {5, 1, 1};
  ASSERT_TRUE(writeBundle(folder / "x", contents));
  EXPECT_FALSE(reopen(folder / "x").hostSpaces()) << "of another kernel";
  forms.hostSpace.reset();
  ASSERT_TRUE(writeBundle(folder / "x", contents));
  auto none = reopen(folder / "x").hostSpaces();
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

// How NCCL is to do a collective is the plan's to say, and stays with it.
TEST(Bundle, KeepsTheAlgorithmOfEachCollective) {
  using planner::CollectiveAlgorithm;
  TempFolder folder;
  BundleContents contents = makeContents();
  for (int k = 0; k < 9; ++k) {
    CollectiveAlgorithm algorithm{CollectiveAlgorithm::Shape(k / 3),
                                  CollectiveAlgorithm::Protocol(k % 3)};
    size_t collectives = 0;
    for (planner::PlanStep &step : contents.plan.steps)
      if (workClass(contents.program.dag.node(step.node)) ==
          planner::WorkClass::Collective) {
        step.algorithm = algorithm;
        ++collectives;
      }
    ASSERT_GT(collectives, 0u);
    ASSERT_TRUE(writeBundle(folder / "x", contents));
    auto plan = reopen(folder / "x").plan();
    ASSERT_TRUE(plan) << plan.error().message;
    ASSERT_EQ(plan->steps.size(), contents.plan.steps.size());
    for (size_t s = 0; s < plan->steps.size(); ++s)
      EXPECT_EQ(plan->steps[s].algorithm, contents.plan.steps[s].algorithm);
    EXPECT_EQ(planner::toText(*plan, contents.program.dag),
              planner::toText(contents.plan, contents.program.dag));
  }
}

TEST(Bundle, IsTheSameBytesForTheSameProgram) {
  TempFolder folder;
  BundleContents contents = makeContents();
  ASSERT_TRUE(writeBundle(folder / "a", contents));
  ASSERT_TRUE(writeBundle(folder / "b", contents));
  EXPECT_EQ(*readFile(folder / "a"), *readFile(folder / "b"));
  contents.origin.options += "arg m=1\n";
  ASSERT_TRUE(writeBundle(folder / "a", contents)) << "over the old one";
  EXPECT_NE(*readFile(folder / "a"), *readFile(folder / "b"));
}

TEST(Bundle, Runs) {
  TempFolder folder;
  ASSERT_TRUE(writeBundle(folder / "x", makeContents()));
  Bundle bundle = reopen(folder / "x");
  auto driver = *device::createHostDriver(2, 2);
  auto kernels = bundle.hostKernels(std::span(allLevels).subspan(2));
  ASSERT_TRUE(kernels) << kernels.error().message;
  auto made = Replayer::create(bundle.program().dag, *bundle.plan(),
                               kernels->objects, *driver);
  ASSERT_TRUE(made) << made.error().message;
  auto floats = [&](uint32_t buffer) {
    return reinterpret_cast<float *>(made->hostBuffer({buffer}).data());
  };
  for (int64_t k = 0; k < 2 * half; ++k)
    floats(TestProgram::ArgX)[k] = float(k), floats(TestProgram::ArgY)[k] = 1;
  ASSERT_TRUE(made->load() && made->replay() && made->fetch());
  for (int64_t k = 0; k < half; ++k)
    EXPECT_EQ(floats(TestProgram::Out)[k], 2 + 2 * float(2 * k + half));
}

TEST(Bundle, SaysWhichKernelsItLacks) {
  TempFolder folder;
  BundleContents contents = makeContents();
  contents.kernels[0].cuda.reset();
  ASSERT_TRUE(writeBundle(folder / "x", contents));
  Bundle bundle = reopen(folder / "x");
  auto expect = [](const auto &result, const char *words) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::Absent);
    EXPECT_NE(result.error().message.find(words), std::string::npos)
        << result.error().message;
  };
  expect(bundle.hostKernels(std::span(allLevels).first(1)),
         "has kernels for x86-64-v2, x86-64-v3, and none for x86-64-v4");
  expect(bundle.hostKernels({}), "and none for this processor");
  expect(bundle.cubins("sm_80"), "has cubins for sm_90, and none for sm_80");
  expect(bundle.cudaTexts(), "has no cuda of kernel 'axpy'");
}

class BundleErrors : public testing::Test {
protected:
  void SetUp() override {
    path = folder / "x.mgpu";
    BundleContents contents = makeContents();
    ASSERT_TRUE(writeBundle(path, contents));
    auto store = db::BundleStore::open(path);
    ASSERT_TRUE(store) << store.error().message;
    record = store->record();
    planner::toText(contents.program, blobs);
    for (const db::ImageRecord &image : record.images)
      blobs[image.blob] = *store->blob(image.blob);
  }
  /// As a stranger would: seals and hashes fit what is written.
  void write() { ASSERT_TRUE(db::writeBundle(path, record, blobs)); }
  void expect(ErrorKind kind, const std::string &words) {
    auto bundle = Bundle::open(path);
    ASSERT_FALSE(bundle);
    expectError(bundle.error(), kind, words);
  }
  static void expectError(const Error &error, ErrorKind kind,
                          const std::string &words) {
    EXPECT_EQ(error.kind, kind) << error.message;
    EXPECT_NE(error.message.find(words), std::string::npos) << error.message;
  }
  static void change(std::string &text, const std::string &from,
                     const std::string &to) {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from << " in\n" << text;
    text.replace(at, from.size(), to);
  }
  void execute(const std::string &sql) {
    db::DatabaseOptions options;
    options.access = db::Access::ReadWrite;
    options.journal = db::Journal::Rollback;
    auto database = db::Database::open(path, options);
    ASSERT_TRUE(database) << database.error().message;
    auto done = database->execute(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  TempFolder folder;
  std::string path;
  db::BundleRecord record;
  planner::Blobs blobs;
};

TEST_F(BundleErrors, OtherFiles) {
  path = folder / "absent";
  expect(ErrorKind::Usage, "cannot be opened");
  ASSERT_TRUE(writeFileAtomic(path, "text, not a database, of many words"));
  EXPECT_FALSE(db::isDatabaseFile(path));
  expect(ErrorKind::Invalid, "is not a bundle, or its first page is damaged");
  ASSERT_TRUE(writeFileAtomic(path, ""));
  EXPECT_FALSE(db::isDatabaseFile(path));
  EXPECT_FALSE(Bundle::open(path));
}

TEST_F(BundleErrors, NewerVersion) {
  execute("PRAGMA user_version=99");
  expect(ErrorKind::Unsupported, "version 99");
}

TEST_F(BundleErrors, NewerProgram) {
  change(record.program.text, "mgpu-program 8", "mgpu-program 9");
  write();
  expect(ErrorKind::Unsupported,
         ": program line 1: the program has version 9, of a later mgpu");
}

TEST_F(BundleErrors, TablesThatAreNotOurs) {
  execute("CREATE TABLE extra(x)");
  expect(ErrorKind::Invalid, "holds a table that is not ours");
}

TEST_F(BundleErrors, RowsThatChanged) {
  for (std::string sql :
       {"UPDATE programs SET options = 'arg n=7'",
        "UPDATE plans SET target = 'cuda'", "UPDATE plans SET id = 2",
        "UPDATE kernel_images SET target = 'x86-64-v4' WHERE target = "
        "'x86-64-v2'",
        "UPDATE kernel_images SET kernel = 4294967296 WHERE form = 'cuda'"}) {
    write();
    execute(sql);
    expect(ErrorKind::Invalid, "is damaged");
  }
  write();
  execute("DELETE FROM programs");
  expect(ErrorKind::Invalid, "holds no program");
}

TEST_F(BundleErrors, BytesThatChanged) {
  std::string source = Sha256().add(std::string_view("module {}")).hex();
  blobs[source] = {std::byte('x')};
  write();
  expect(ErrorKind::Invalid, "the bytes of hash " + source + " have changed");
  blobs.erase(source);
  write();
  expect(ErrorKind::Invalid, "lacks the bytes of hash " + source);
}

TEST_F(BundleErrors, KernelsThatChanged) {
  ASSERT_TRUE(reopen(path).verify());
  for (const db::ImageRecord &image : record.images) {
    auto kept = blobs[image.blob];
    blobs[image.blob].push_back(std::byte(1));
    write();
    auto sound = reopen(path).verify();
    ASSERT_FALSE(sound) << image.form;
    expectError(sound.error(), ErrorKind::Invalid,
                "the bytes of hash " + image.blob + " have changed");
    blobs[image.blob] = kept;
  }
}

// They were lines of words once, and then had fields for matmuls.
TEST_F(BundleErrors, KernelsOfAnOlderMgpuAreRefused) {
  for (const std::string older :
       {"name \"axpy_kernel0\" entry \"axpy\" block 4 1 1",
        R"({"name":"axpy_kernel0","space":{"staged_bytes":0}})"}) {
    auto bytes = std::as_bytes(std::span(older));
    std::string hash = Sha256().add(bytes).hex();
    blobs[hash].assign(bytes.begin(), bytes.end());
    for (db::ImageRecord &image : record.images) {
      if (image.form == "cuda")
        image.facts = older;
      if (image.form == "host-space")
        image.blob = hash;
    }
    write();
    Bundle bundle = reopen(path);
    EXPECT_TRUE(bundle.hostKernels(allLevels));
    const std::string words = "was made by an older mgpu";
    expectError(bundle.cudaTexts().error(), ErrorKind::Invalid, words);
    expectError(bundle.hostSpaces().error(), ErrorKind::Invalid, words);
  }
}

TEST_F(BundleErrors, HeadersOfKernelsThatCannotBe) {
  for (auto [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"cluster_x\":1", "\"cluster_x\":0"},
           {"\"block\":[32,2,1]", "\"block\":[64,2,1]"}, // not the space's
           {"\"awaits\":true", "\"awaits\":1"},
           {"\"max_grid\"", "\"most_grid\""}}) {
    db::BundleRecord kept = record;
    for (db::ImageRecord &image : record.images)
      if (image.form == "cuda")
        change(image.facts, from, to);
    write();
    auto texts = reopen(path).cudaTexts();
    ASSERT_FALSE(texts) << to;
    EXPECT_EQ(texts.error().kind, ErrorKind::Invalid);
    record = std::move(kept);
  }
}

TEST_F(BundleErrors, ValuesBeyondTheLimit) {
  blobs["large"].resize(size_t(256) << 20);
  auto done = db::writeBundle(folder / "y", record, blobs);
  ASSERT_FALSE(done);
  expectError(done.error(), ErrorKind::Unsupported, "268435456 bytes");
  EXPECT_FALSE(fileSize(folder / "y")) << "nothing is written";
}

TEST_F(BundleErrors, AProgramThatLeavesItsBuffers) {
  change(record.program.text, "copy 1 0+6*4:4", "copy 1 28+6*4:4");
  write();
  expect(ErrorKind::Invalid, "touches bytes 28 to 52");
}

TEST_F(BundleErrors, AnUnsafePlan) {
  change(record.plans[0].text, "place 6 \"y0\" at 256", "place 6 \"y0\" at 0");
  write();
  auto plan = reopen(path).plan();
  ASSERT_FALSE(plan);
  expectError(plan.error(), ErrorKind::Invalid, "unsafe plan");
  change(record.plans[0].text, "arena 0 768", "arena 0 76");
  write();
  EXPECT_FALSE(reopen(path).plan());
  record.plans.clear();
  write();
  plan = reopen(path).plan();
  ASSERT_FALSE(plan);
  expectError(plan.error(), ErrorKind::Absent, "no plan for the host");
}

// A changed byte is an error or changes nothing, and no prefix is a bundle.
TEST_F(BundleErrors, Damage) {
  auto bytes = *readFile(path);
  auto write = [&](std::span<const std::byte> data) {
    ASSERT_TRUE(writeFileAtomic(
        path, std::string_view(reinterpret_cast<const char *>(data.data()),
                               data.size())));
  };
  for (size_t length = 0; length < bytes.size(); length += 3001) {
    write(std::span(bytes).first(length));
    EXPECT_FALSE(Bundle::open(path)) << length;
  }
  std::mt19937_64 random(1);
  BundleContents contents = makeContents();
  size_t refused = 0, rounds = 300;
  for (size_t round = 0; round < rounds; ++round) {
    auto damaged = bytes;
    size_t at = random() % damaged.size();
    damaged[at] ^= std::byte(1 + random() % 255);
    write(damaged);
    auto bundle = Bundle::open(path);
    if (!bundle) {
      ++refused;
      continue;
    }
    EXPECT_TRUE(bundle->program() == contents.program) << at;
    auto plan = bundle->plan();
    auto kernels = bundle->hostKernels(allLevels);
    if (!plan || !kernels) {
      ++refused;
      continue;
    }
    EXPECT_EQ(kernels->objects[0], contents.kernels[0].host["x86-64-v3"]) << at;
  }
  EXPECT_GT(refused, rounds / 10);
  EXPECT_LT(refused, rounds) << "free pages and unread forms change nothing";
}

} // namespace
