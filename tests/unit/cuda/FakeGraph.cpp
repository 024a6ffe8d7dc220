// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs of the driver that is not there.
#include "FakeNodes.h"

#include <algorithm>

namespace mgpu::fake {

namespace {

CUresult graphCreate(CUgraph *graph, unsigned flags) {
  MGPU_FAKE_ENTER("cuGraphCreate");
  if (flags != 0) // 18613
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  *graph = reinterpret_cast<CUgraph>(fake.graphs.add({}));
  return CUDA_SUCCESS;
}

CUresult graphDestroy(CUgraph graph) {
  FakeCuda &fake = FakeCuda::instance();
  CUresult entered = fake.enter("cuGraphDestroy");
  if (!fake.graphs.remove(graph))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  return entered;
}

bool isEdgeLegal(const FakeCuda &fake, const CUgraphEdgeData &edge,
                 const Node &from, const CUgraphNodeParams &to) {
  // 1984, 1991: no node has ports that edges lead to; unused bytes are zero.
  if (edge.to_port || !isZero(edge.reserved, sizeof edge.reserved))
    return false;
  const bool isKernels = from.params.type == CU_GRAPH_NODE_TYPE_KERNEL &&
                         to.type == CU_GRAPH_NODE_TYPE_KERNEL;
  switch (edge.type) {
  case CU_GRAPH_DEPENDENCY_TYPE_DEFAULT:
    // 1955: the programmatic port must be used with the programmatic type;
    // 1976: only kernels have ports that are not zero.
    return edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT ||
           (edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
            from.params.type == CU_GRAPH_NODE_TYPE_KERNEL);
  case CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC:
    // 1944: only between kernels, and with either of these ports. Before sm_90
    // there is no griddepcontrol (PTX ISA).
    return isKernels && fake.major >= 9 &&
           (edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
            edge.from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
  default:
    return false;
  }
}

/// The nodes of a child graph, behind what `parent` follows, which then follows
/// them all: here a graph has no graphs in it.
CUresult addChild(FakeCuda &fake, CUgraph child, Node &parent) {
  const Graph *from = fake.graphs.find(child);
  if (!from || from == parent.graph || parent.params.graph.ownership != 0)
    return CUDA_ERROR_INVALID_VALUE;
  std::map<const Node *, Node *> copies;
  for (const auto &each : from->nodes) {
    auto copy = std::make_unique<Node>(*each);
    copy->graph = parent.graph;
    copy->id = ++fake.nodesMade;
    for (Node *&dependency : copy->dependencies)
      dependency = copies.at(dependency);
    if (copy->dependencies.empty()) {
      copy->dependencies = parent.dependencies;
      copy->edgeData = parent.edgeData;
    }
    copies[each.get()] = copy.get();
    parent.graph->nodes.push_back(std::move(copy));
  }
  for (const auto &[original, copy] : copies)
    parent.dependencies.push_back(copy);
  parent.edgeData.clear();
  return CUDA_SUCCESS;
}

CUresult addNode(CUgraphNode *out, CUgraph handle,
                 const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
                 size_t count, CUgraphNodeParams *params) {
  MGPU_FAKE_ENTER("cuGraphAddNode");
  Graph *graph = fake.graphs.find(handle);
  if (!graph || !params || (count && !dependencies))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  if (!unusedIsZero(*params))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  auto node = std::make_unique<Node>();
  node->graph = graph;
  node->params = *params;
  node->id = ++fake.nodesMade;
  for (size_t k = 0; k < count; ++k) {
    auto *dependency = reinterpret_cast<Node *>(dependencies[k]);
    bool ours =
        std::any_of(graph->nodes.begin(), graph->nodes.end(),
                    [&](const auto &each) { return each.get() == dependency; });
    bool twice = std::count(node->dependencies.begin(),
                            node->dependencies.end(), dependency) > 0;
    if (!ours || twice) // 21444: no duplicates
      return fake.refuse(CUDA_ERROR_INVALID_VALUE);
    if (edges && !isEdgeLegal(fake, edges[k], *dependency, *params))
      return fake.refuse(CUDA_ERROR_INVALID_VALUE);
    node->dependencies.push_back(dependency);
    if (edges)
      node->edgeData.push_back(edges[k]);
  }
  CUresult code = CUDA_SUCCESS;
  switch (params->type) {
  case CU_GRAPH_NODE_TYPE_EMPTY:
    break;
  case CU_GRAPH_NODE_TYPE_KERNEL:
    code = checkKernel(fake, params->kernel, *node);
    break;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    fake.lastCopy = params->memcpy.copyParams;
    code = checkCopy(fake, params->memcpy);
    break;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    code = checkMemset(fake, params->memset);
    break;
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    if (!fake.events.find(params->eventRecord.event))
      code = CUDA_ERROR_INVALID_HANDLE;
    break;
  case CU_GRAPH_NODE_TYPE_GRAPH:
    code = addChild(fake, params->graph.graph, *node);
    break;
  default:
    code = CUDA_ERROR_NOT_SUPPORTED;
  }
  if (code != CUDA_SUCCESS)
    return fake.refuse(code);
  graph->nodes.push_back(std::move(node));
  *out = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return CUDA_SUCCESS;
}

CUresult setAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                      const CUkernelNodeAttrValue *value) {
  MGPU_FAKE_ENTER("cuGraphKernelNodeSetAttribute");
  auto *node = reinterpret_cast<Node *>(handle);
  // 20369: priorities are there on kernel nodes only.
  if (!node || !fake.graphs.find(node->graph) ||
      node->params.type != CU_GRAPH_NODE_TYPE_KERNEL)
    return fake.refuse(CUDA_ERROR_INVALID_HANDLE);
  if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY || value->priority > 0 ||
      value->priority < -5)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  node->priority = value->priority;
  return CUDA_SUCCESS;
}

CUresult getNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
  MGPU_FAKE_ENTER("cuGraphGetNodes");
  Graph *graph = fake.graphs.find(handle);
  if (!graph)
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  size_t there = graph->nodes.size();
  if (fake.losesANode && there > 0)
    --there;
  if (nodes)
    for (size_t k = 0; k < std::min(*count, there); ++k)
      nodes[k] = reinterpret_cast<CUgraphNode>(graph->nodes[k].get());
  *count = there;
  return CUDA_SUCCESS;
}

CUresult getEdges(CUgraph handle, CUgraphNode *from, CUgraphNode *to,
                  CUgraphEdgeData *data, size_t *count) {
  MGPU_FAKE_ENTER("cuGraphGetEdges");
  Graph *graph = fake.graphs.find(handle);
  // 20149: edge data only together with both ends.
  if (!graph || (data && (!from || !to)))
    return fake.refuse(CUDA_ERROR_INVALID_VALUE);
  size_t k = 0;
  for (const auto &node : graph->nodes)
    for (size_t d = 0; d < node->dependencies.size(); ++d) {
      const CUgraphEdgeData edge = edgeDataOf(fake, *node, d);
      if (from && k < *count) {
        if (!data && !isZero(&edge, sizeof edge)) // 20147
          return fake.refuse(CUDA_ERROR_LOSSY_QUERY);
        from[k] = reinterpret_cast<CUgraphNode>(node->dependencies[d]);
        to[k] = reinterpret_cast<CUgraphNode>(node.get());
        if (data)
          data[k] = edge;
      }
      ++k;
    }
  *count = k;
  return CUDA_SUCCESS;
}

} // namespace

CUgraphEdgeData edgeDataOf(const FakeCuda &fake, const Node &node,
                           size_t dependency) {
  return dependency < node.edgeData.size() && !fake.losesEarlyEdges
             ? node.edgeData[dependency]
             : CUgraphEdgeData{};
}

std::vector<CUgraphNodeType> FakeCuda::builtTypes() const {
  std::vector<CUgraphNodeType> types;
  for (const auto &node : graphs.youngest()->nodes)
    types.push_back(node->params.type);
  return types;
}

void addGraphEntries(device::CudaApi &api) {
  api.cuGraphCreate = graphCreate;
  api.cuGraphDestroy = graphDestroy;
  api.cuGraphAddNode = addNode;
  api.cuGraphKernelNodeSetAttribute = setAttribute;
  api.cuGraphGetNodes = getNodes;
  api.cuGraphGetEdges = getEdges;
}

} // namespace mgpu::fake
