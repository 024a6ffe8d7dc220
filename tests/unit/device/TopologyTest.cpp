// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/Topology.h"

#include <gtest/gtest.h>

using namespace mgpu;
using namespace mgpu::device;

TEST(Topology, EveryBuiltInOneIsValid) {
  ASSERT_EQ(builtinTopologies().size(), 9u);
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
