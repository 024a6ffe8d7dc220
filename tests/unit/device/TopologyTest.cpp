// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/Topology.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::device;

/// What is wrong with `text` once `from` in it is `to`; "" where nothing is.
static std::string faultWith(std::string text, const std::string &from,
                             const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  Result<Topology> topology = parseTopology(text, "t");
  return topology ? std::string() : topology.error().message;
}

TEST(Topology, EveryBuiltInOneIsValid) {
  ASSERT_EQ(builtinTopologies().size(), 14u);
  for (std::string_view name : builtinTopologies()) {
    Result<Topology> topology = openTopology("sim:" + std::string(name));
    ASSERT_TRUE(topology) << topology.error().message;
    EXPECT_EQ(topology->name, name);
    EXPECT_FALSE(topology->device.source.empty());
  }
  EXPECT_EQ(openTopology("sim:dgx-h200")->device.memoryBytes, 141000000000u);
  EXPECT_EQ(openTopology("sim:dgx-h100")->device.memoryBytes, 80000000000u);
  EXPECT_EQ(openTopology("sim:dgx-h100-x2")->devicesPerNode(), 8u);
}

TEST(Topology, FaultsAreNamed) {
  auto message = [](std::string_view text) {
    Result<Topology> topology = parseTopology(text, "t");
    return topology ? std::string() : topology.error().message;
  };
  EXPECT_NE(message("{").find("not valid JSON"), std::string::npos);
  EXPECT_NE(message("[]").find("not an object"), std::string::npos);
  EXPECT_NE(message(R"({"format":"mgpu-topology/1","nmae":"x"})").find("nmae"),
            std::string::npos);
  EXPECT_NE(message(R"({"format":"mgpu-topology/1","name":"x","devices":0})")
                .find("devices"),
            std::string::npos);
  EXPECT_NE(message(R"({"format":"mgpu-topology/1","name":"x","nodes":2,)"
                    R"("devices":3})")
                .find("multiple of the nodes"),
            std::string::npos);
  Result<Topology> unknown = openTopology("sim:dgx-1");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("dgx-h200"), std::string::npos);
  EXPECT_FALSE(openTopology("host:4"));
  EXPECT_FALSE(openTopology("sim:/no/such.json"));
}

/// One with all that a calibration may say.
static Topology calibrated() {
  Topology topology = *openTopology("sim:dgx-h100");
  Topology::Calibration &c = topology.calibration.emplace();
  c.launchUs = 2.5;
  c.copyLatencyUs = 7.25;
  c.source = "measured";
  c.collectives = {{"all_reduce", 4, 4096, 12.5}};
  c.matmuls = {{"bf16", 256, 128, 64, 3}};
  c.contention = {{"kernel", "copy", 1.5}};
  c.besideKernel = {{16, 1.25}};
  c.matmuls.push_back({"f64", 8, 8, 8, 1, true});
  c.host = {{{{"launch", 1}, {"exp", 4096}}, 32768, 1.5}};
  topology.link.kind = LinkKind::Memory;
  c.pairs = {{0, 1, 4.5, 2e10}, {1, 0, 5.5, 1e10}};
  return topology;
}

TEST(Topology, TheTextOfOneIsReadAsTheSame) {
  for (std::string_view name : builtinTopologies()) {
    Topology topology = *openTopology("sim:" + std::string(name));
    const std::string text = topologyText(topology);
    Result<Topology> again = parseTopology(text, "t");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(topologyText(*again), text);
    EXPECT_EQ(again->link.bytesPerSecond, topology.link.bytesPerSecond);
    EXPECT_FALSE(again->calibration);
  }
  const std::string text = topologyText(calibrated());
  Result<Topology> again = parseTopology(text, "t");
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(again->calibration);
  EXPECT_EQ(topologyText(*again), text);
  EXPECT_EQ(again->calibration->collectives[0].us, 12.5);
  EXPECT_EQ(again->calibration->contention[0].beside, "copy");
  EXPECT_EQ(again->calibration->besideKernel[0].multiprocessors, 16u);
  ASSERT_NE(again->pair(1, 0), nullptr);
  EXPECT_EQ(again->pair(1, 0)->startUs, 5.5);
  EXPECT_EQ(again->pair(0, 1)->bytesPerSecond, 2e10);
  EXPECT_EQ(again->pair(0, 2), nullptr);
}

TEST(Topology, FaultsOfACalibrationAreNamed) {
  const std::string good = topologyText(calibrated());
  auto with = [&](const std::string &from, const std::string &to) {
    return faultWith(good, from, to);
  };
  EXPECT_EQ(with("\"op\": \"all_reduce\"", "\"op\": \"all_recude\""),
            "t: calibration: collectives 1: field \"op\" must be one of "
            "all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
            "send_recv");
  EXPECT_NE(with("\"factor\": 1.5", "\"factor\": 0.5").find("factor"),
            std::string::npos);
  EXPECT_NE(with("\"us\": 12.5", "\"us\": 0").find("from 1e-9"),
            std::string::npos);
  EXPECT_NE(with("\"source\": \"measured\"", "\"source\": \"\"").find("source"),
            std::string::npos);
  EXPECT_NE(with("\"matmuls\"", "\"matmul\"").find("matmul"),
            std::string::npos);
}

TEST(Topology, ARateIsReadWithItsSourceAndItsFaultsAreNamed) {
  const Topology quoted = *openTopology("sim:a100-hybrid-cube-330w");
  ASSERT_NE(quoted.rate("memory_share"), nullptr);
  EXPECT_NE(quoted.rate("memory_share")->source().find("1700 GB/s"),
            std::string::npos);
  EXPECT_TRUE(quoted.hasRanges());
  EXPECT_FALSE(quoted.atEnd(true).hasRanges());
  // Slow are the longest time and the smallest share.
  EXPECT_EQ(quoted.atEnd(true).rate("one_shot_us")->value, 15);
  EXPECT_EQ(quoted.atEnd(true).rate("clock_share")->value, 0.825);
  EXPECT_EQ(quoted.atEnd(false).rate("clock_share")->value, 1);
  const std::string good = topologyText(quoted);
  auto with = [&](const std::string &from, const std::string &to) {
    return faultWith(good, from, to);
  };
  EXPECT_NE(with("\"clock_share\"", "\"clock_shore\"").find("clock_share"),
            std::string::npos);
  EXPECT_NE(with("\"value\": 312", "\"value\": 313").find("the field"),
            std::string::npos);
  EXPECT_NE(with("\"low\": 0.825", "\"low\": 1").find("below"),
            std::string::npos);
  EXPECT_NE(
      with("\"url\": \"https", "\"url\": \"\", \"name\": \"h").find("url"),
      std::string::npos);
  EXPECT_NE(with("\"high\": 1.0", "\"high\": 1.5").find("share"),
            std::string::npos);
}
