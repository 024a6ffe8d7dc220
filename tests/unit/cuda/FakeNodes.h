// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKENODES_H
#define MGPU_TESTS_UNIT_CUDA_FAKENODES_H

// What CUDA asks of the parameters of a graph's node, when it is made, when it
// is changed, and when it runs. Each gives the error the driver would.

#include "FakeCuda.h"

namespace mgpu::fake {

bool isZero(const void *data, size_t size);
/// 21448: reserved0 and all bytes past the member used must be zero.
bool unusedIsZero(const CUgraphNodeParams &params);

/// Copies the values into the node.
CUresult checkKernel(FakeCuda &fake, const CUDA_KERNEL_NODE_PARAMS_v3 &params,
                     Node &node);
CUresult checkCopy(FakeCuda &fake, const CUDA_MEMCPY_NODE_PARAMS &params);
/// Checks that the memory of one end is there.
CUresult checkEnd(FakeCuda &fake, const CUDA_MEMCPY_NODE_PARAMS &params,
                  bool isSource);
/// What an edge of a graph is, as it is read back.
CUgraphEdgeData edgeDataOf(const FakeCuda &fake, const Node &node,
                           size_t dependency);
CUresult checkMemset(FakeCuda &fake, const CUDA_MEMSET_NODE_PARAMS_v2 &params);

/// A wait for an event with a capture on either side of it.
CUresult waitCaptured(FakeCuda &fake, Stream &on, const Event &event);
/// The node that is captured next in the stream.
Node &captureNode(Stream &stream, std::unique_ptr<Node> node);
/// Captures a kernel of a library's on the stream: its node follows the
/// frontier, and is that from then on. With `isSerialized`, launched with
/// PROGRAMMATIC_STREAM_SERIALIZATION: such a kernel does nothing before what it
/// follows has ended, but may begin.
void captureKernel(FakeCuda &fake, Stream &stream, const void *owner,
                   std::function<std::unique_ptr<Operation>()> start,
                   bool isSerialized);

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKENODES_H
