// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/exact/GeneticSearch.h"

#include "planner/schedule/exact/PriorityRules.h"

#include <algorithm>
#include <cmath>

namespace mgpu::planner::exact {

// Set on PSPLIB's open j60 instances and on generated ones of 120 activities.
static constexpr uint32_t firstPopulation = 150;
static constexpr uint32_t largestPopulation = 1000;
static constexpr double mutations = 1.5; ///< moves a child, on average
static constexpr uint64_t patience = 40; ///< children an individual

GeneticSearch::GeneticSearch(const Problem &problem, uint64_t seed)
    : problem(problem), generator(problem), justifier(problem), rng(seed),
      populationSize(firstPopulation), keys(problem.size()),
      taken(problem.size()), load(problem.size(), 0) {
  for (PriorityRule rule : allPriorityRules)
    rules.push_back(priorityKeys(problem, rule));
  for (uint32_t a = 0; a < problem.size(); ++a)
    for (uint32_t r = 0; r < problem.numResources(); ++r)
      if (problem.capacity(r) > 0)
        load[a] += double(problem.demand(a, r)) / problem.capacity(r);
  // The plain rules come first, so that the first schedule is a good one.
  bestMakespan = problem.horizon() + 1;
  for (const Keys &rule : rules) {
    Individual child;
    generator.parallel(rule, child.starts);
    justifier.both(child.starts);
    finish(child);
    place(std::move(child));
    generator.orderByKeys(rule, list);
    generator.serial(list, child.starts);
    justifier.both(child.starts);
    finish(child);
    place(std::move(child));
  }
}

/// Random keys near a rule: regret-based biased sampling in spirit (Drexl
/// 1991), by noise on the keys.
void GeneticSearch::sample(Individual &child) {
  const Keys &rule = rules[rng.below(3)];
  auto [least, most] = std::minmax_element(rule.begin(), rule.end());
  double noise = (*most - *least) * (0.05 + 0.4 * rng.uniform());
  for (uint32_t a = 0; a < problem.size(); ++a)
    keys[a] = rule[a] + noise * rng.uniform();
  if (rng.below(2)) {
    generator.parallel(keys, child.starts);
  } else {
    generator.orderByKeys(keys, list);
    generator.serial(list, child.starts);
  }
}

void GeneticSearch::crossLists(const Individual &mother,
                               const Individual &father) {
  uint32_t n = problem.size();
  uint32_t q1 = rng.below(n + 1), q2 = rng.below(n + 1);
  if (q1 > q2)
    std::swap(q1, q2);
  std::fill(taken.begin(), taken.end(), 0);
  list.clear();
  auto take = [&](const std::vector<uint32_t> &from, size_t until) {
    for (uint32_t a : from) {
      if (list.size() >= until)
        break;
      if (!taken[a]) {
        taken[a] = 1;
        list.push_back(a);
      }
    }
  };
  take(mother.list, q1);
  take(father.list, q2);
  take(mother.list, n);
}

void GeneticSearch::crossWindow(const Individual &mother,
                                const Individual &father) {
  // Tries a few random windows; the one in which the mother is busiest counts.
  uint32_t n = problem.size();
  Time length = std::max<Time>(
      1, Time(double(mother.makespan) * (0.2 + 0.55 * rng.uniform())));
  Time left = 0;
  double most = -1;
  for (int attempt = 0; attempt < 3; ++attempt) {
    Time begin = Time(
        rng.below(uint32_t(std::max<Time>(1, mother.makespan - length + 1))));
    double busy = 0;
    for (uint32_t a = 0; a < n; ++a) {
      Time overlap =
          std::min(mother.starts[a] + problem.duration(a), begin + length) -
          std::max(mother.starts[a], begin);
      if (overlap > 0)
        busy += load[a] * overlap;
    }
    if (busy > most) {
      most = busy;
      left = begin;
    }
  }
  double far = double(problem.horizon()) + 1;
  for (uint32_t a = 0; a < n; ++a) {
    Time start = mother.starts[a];
    if (start >= left && start < left + length)
      keys[a] = start;
    else
      keys[a] = father.starts[a] + (start < left ? -far : far);
  }
  generator.orderByKeys(keys, list);
}

void GeneticSearch::mutate() {
  double rate = mutations / double(problem.size());
  for (size_t i = 0; i + 1 < list.size(); ++i) {
    if (rng.uniform() >= rate)
      continue;
    // Behind a random later place, as far as precedence allows.
    size_t to = std::min(list.size() - 1, i + 1 + rng.below(5));
    auto after = problem.successors(list[i]);
    for (size_t k = i; k < to; ++k) {
      if (std::binary_search(after.begin(), after.end(), list[k + 1]))
        break;
      std::swap(list[k], list[k + 1]);
    }
  }
}

/// Fills in what follows from the starts; whether they are the best so far.
bool GeneticSearch::finish(Individual &child) {
  child.makespan = problem.makespan(child.starts);
  generator.orderByStarts(child.starts, child.list);
  child.lateness = 0;
  for (Time start : child.starts)
    child.lateness += start;
  if (child.makespan >= bestMakespan)
    return false;
  bestMakespan = child.makespan;
  bestStarts = child.starts;
  return true;
}

const GeneticSearch::Individual &GeneticSearch::pick() {
  return population[rng.below(population.size())];
}

void GeneticSearch::place(Individual &&child) {
  uint64_t hash = 0xcbf29ce484222325;
  for (Time start : child.starts)
    hash = (hash ^ uint64_t(start)) * 0x100000001b3;
  if (std::find(hashes.begin(), hashes.end(), hash) != hashes.end())
    return;
  if (population.size() < populationSize) {
    population.push_back(std::move(child));
    hashes.push_back(hash);
    return;
  }
  // The worst of a few makes room, and parents are drawn evenly: more pressure
  // ends too soon.
  size_t worst = rng.below(population.size());
  for (int k = 0; k < 4; ++k) {
    size_t other = rng.below(population.size());
    if (better(population[worst], population[other]))
      worst = other;
  }
  if (better(child, population[worst])) {
    population[worst] = std::move(child);
    hashes[worst] = hash;
  }
}

bool GeneticSearch::step() {
  Individual child;
  if (population.size() < populationSize) {
    sample(child);
  } else {
    const Individual &mother = pick(), &father = pick();
    if (rng.below(2))
      crossLists(mother, father);
    else
      crossWindow(mother, father);
    mutate();
    generator.serial(list, child.starts);
  }
  justifier.both(child.starts);
  bool improved = finish(child);
  place(std::move(child));
  sinceBest = improved ? 0 : sinceBest + 1;
  if (sinceBest >= patience * populationSize) {
    // Stuck: a new and larger population, into which the best does not come at
    // once. A short search has a quick one, a long one stays diverse (after
    // Harik and Lobo's parameter-less genetic algorithm, 1999).
    sinceBest = 0;
    population.clear();
    hashes.clear();
    populationSize = std::min(populationSize * 3 / 2, largestPopulation);
  }
  return improved;
}

void GeneticSearch::adopt(const Starts &starts) {
  Individual child;
  child.starts = starts;
  if (finish(child))
    sinceBest = 0;
  place(std::move(child));
}

} // namespace mgpu::planner::exact
