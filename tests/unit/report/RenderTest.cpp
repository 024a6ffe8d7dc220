// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "support/Sha256.h"
#include "tests/unit/report/TestReport.h"
#include "tuner/report/Assets.h"
#include "tuner/report/ReportText.h"

#include <algorithm>

namespace mgpu::tuner {
namespace {

Report reportOf(const std::string &name) {
  db::TempFolder folder;
  auto store = db::TuningStore::open(folder / "t.db");
  EXPECT_TRUE(store);
  fill(*store, testFacts(name));
  EXPECT_TRUE(storeProfile(testProgram(), testProfile(name), "7", *store));
  auto report = readReport(*store, testProgram());
  EXPECT_TRUE(report);
  return report ? std::move(*report) : Report();
}

size_t countOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1))
    ++count;
  return count;
}

const std::string evil = "</script><script>alert(1)</script>&\"'|`*<img>";

TEST(Html, IsOneFileThatRefersToNoOther) {
  std::string page = toHtml(reportOf("kern"));
  const size_t at = page.find(echartsScript());
  ASSERT_NE(at, std::string::npos);
  page.erase(at, echartsScript().size());
  for (const char *reference :
       {"src=", "href=", "url(", "@import", "http:", "https:", "//cdn"})
    EXPECT_EQ(countOf(page, reference), 0u) << reference;
  EXPECT_EQ(countOf(page, "<script"), 3u);
  for (const char *part :
       {"chart-result", "chart-timeline", "chart-progress", "chart-importance",
        "id=\"kernels\"", "80.0 %", "data-which=\"before\"", "-50.0 %"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(Html, NamesAreTextWhateverTheyContain) {
  std::string page = toHtml(reportOf(evil));
  EXPECT_EQ(countOf(page, "alert(1)</script>&"), 0u);
  EXPECT_EQ(countOf(page, "<img>"), 0u);
  EXPECT_EQ(countOf(page, "<script"), 3u);
  EXPECT_EQ(countOf(page, "</script"), 3u);
  EXPECT_NE(page.find("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"
                      "&amp;&quot;&#39;"),
            std::string::npos);
}

TEST(Html, TakesBytesThatAreNoText) {
  Report report = reportOf("kern");
  report.title = report.kernels[0].facts.name = std::string("a\x01\xff\0b", 5);
  std::string page = toHtml(report);
  EXPECT_EQ(page.find('\x01'), std::string::npos);
  EXPECT_EQ(page.find('\0'), std::string::npos);
}

TEST(Html, HasTheLibraryThatItsReadmeNames) {
  EXPECT_EQ(Sha256().add(std::as_bytes(std::span(echartsScript()))).hex(),
            "b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0");
}

TEST(Html, OfALongSearchShowsAPartAndTheBest) {
  Report report = reportOf("kern");
  const ReportTrial one = report.trials.back();
  ASSERT_NE(one.trial.status, db::TrialStatus::Ok);
  report.trials.insert(report.trials.begin() + 2, 20'001, one);
  const std::string page = toHtml(report);
  EXPECT_LT(page.size(), echartsScript().size() + 3'000'000);
  EXPECT_NE(page.find("of 20015 trials"), std::string::npos);
  for (const char *kept :
       {"\"median_us\": 50.0", "\"median_us\": 100.0", "\"median_us\": 54.0"})
    EXPECT_NE(page.find(kept), std::string::npos) << kept;
  EXPECT_EQ(countOf(toCsv(report), "\r\n"), 20'016u); // which has all
}

TEST(JsonReport, SaysItAll) {
  auto json = nlohmann::json::parse(toJsonText(reportOf(evil)));
  EXPECT_EQ(json["kernels"][0]["name"], evil);
  EXPECT_EQ(json["kernels"][0]["share_of_peak"], 0.8);
  EXPECT_EQ(json["before"]["us"], 100);
  EXPECT_EQ(json["after"]["low_us"], 45);
  EXPECT_EQ(json["trials"].size(), 14u);
  EXPECT_EQ(json["timeline_after"]["exposed_us"], 13);
  EXPECT_EQ(json["timeline_after"]["exposed"][0]["device"], 0);
  EXPECT_EQ(json["importance"][0]["parameters"][0]["parameter"], "threads");
  EXPECT_EQ(json["decisions"][0]["seconds"], 7.5);
  EXPECT_EQ(json["machine"]["peak_flops_per_us"], 1000);
}

TEST(Profile, IsInEveryFormAsItWasMeasured) {
  const Report report = reportOf(evil);
  auto profile = nlohmann::json::parse(toJsonText(report))["profile"];
  EXPECT_EQ(profile["replay"]["median_us"], 50);
  EXPECT_EQ(profile["recomputed_us"], 55);
  EXPECT_EQ(profile["version"], "7");
  ASSERT_EQ(profile["nodes"].size(), 2u); // in plan order
  EXPECT_EQ(profile["nodes"][1]["name"], evil);
  EXPECT_EQ(profile["nodes"][1]["ratio"], 1.5);
  EXPECT_EQ(profile["nodes"][0]["p75_us"], 11);

  const std::string page = toHtml(report);
  const size_t longest =
      page.find("<td>20.000</td><td>30.000</td><td>1.50</td>");
  const size_t other = page.find("<td>4.000</td><td>10.000</td><td>2.50</td>");
  ASSERT_NE(longest, std::string::npos);
  ASSERT_NE(other, std::string::npos);
  EXPECT_LT(longest, other);
  EXPECT_NE(page.find("</span>75.0 %"), std::string::npos); // 30 of 40 us
  EXPECT_NE(page.find("The configuration is the decided one."),
            std::string::npos);
  const std::string text = toMarkdown(report);
  EXPECT_NE(text.find("| sum | collective | 0,1 | 4.000 | 10.000 | 2.50 |"),
            std::string::npos)
      << text;
}

TEST(Profile, ThatIsNotThereIsExplained) {
  Report report = reportOf("kern");
  report.profile->configuration = {{"threads", "2"}};
  EXPECT_NE(toMarkdown(report).find("another than was decided"),
            std::string::npos);
  report.profile.reset();
  EXPECT_TRUE(nlohmann::json::parse(toJsonText(report))["profile"].is_null());
  EXPECT_EQ(countOf(toHtml(report), "id=\"nodes\""), 0u);
  for (const std::string &text : {toHtml(report), toMarkdown(report)})
    EXPECT_NE(text.find("mgpu-tune profile dir/kern --arg rate=0.5 --db "),
              std::string::npos);
}

TEST(Profile, OfManyNodesTheLongestAreShown) {
  Report report = reportOf("kern");
  const NodeProfile one = report.profile->nodes[0];
  for (uint32_t k = 0; k < 500; ++k) {
    report.profile->nodes.push_back(one);
    report.profile->nodes.back().node = 10 + k;
  }
  EXPECT_EQ(countOf(toHtml(report), "<td>4.000</td><td>10.000</td>"),
            mostNodeRows - 1);
  EXPECT_NE(toMarkdown(report).find("100 longest of 502 nodes"),
            std::string::npos);
  EXPECT_EQ(
      nlohmann::json::parse(toJsonText(report))["profile"]["nodes"].size(),
      502u);
}

TEST(CsvReport, HasALineForEachTrial) {
  Report report = reportOf(evil);
  report.trials[0].trial.sentence = "=1+1, \"quoted\"\nand more";
  std::string text = toCsv(report);
  EXPECT_EQ(countOf(text, "\r\n"), 15u);
  EXPECT_NE(text.find("\"'=1+1, \"\"quoted\"\"\nand more\""),
            std::string::npos);
  EXPECT_NE(text.find(",wrong,,,,,,"), std::string::npos);
  EXPECT_NE(
      text.find("1970-01-01 00:00:01 UTC,\"program\",ok,100,90,120,10,1,"),
      std::string::npos);
}

TEST(MarkdownReport, HasTheTablesAndNoMarkupOfOthers) {
  std::string text = toMarkdown(reportOf(evil));
  for (const char *part :
       {"| default | 100.0 us \\[90.00 us, 120.0 us\\] |",
        "| change | -50.0 % \\[-55.0, -40.0\\] |", "| 80.0 % | 2 | 0 |",
        "| program | threads | 2 | 11 |", "| sum | 0 | 4.000 | 10.000 |"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  EXPECT_EQ(countOf(text, "<script>"), 0u);
  EXPECT_EQ(countOf(text, "*<img"), 0u);
}

TEST(Units, AreReadable) {
  EXPECT_EQ(durationText(0.5), "500.0 ns");
  EXPECT_EQ(durationText(12345), "12.35 ms");
  EXPECT_EQ(durationText(3e6), "3.000 s");
  EXPECT_EQ(timeText(0), "1970-01-01 00:00:00 UTC");
}

} // namespace
} // namespace mgpu::tuner
