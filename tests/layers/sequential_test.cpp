// Names, shapes and tables of models, and what their descriptions refuse.
#include "lockstep/layers/sequential.h"

#include "lockstep/layers/zoo.h"

#include "support/catch.h"
#include "support/throws.h"

using namespace lockstep;
using lockstep::test::contains;
using lockstep::test::message_of;

namespace {

std::vector<std::string> names_of(const Sequential& model) {
  std::vector<std::string> names;
  for (int i = 0; i < model.size(); ++i) names.push_back(model.name(i));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("layers without a name are called after their kind", "[layers]") {
  CHECK(names_of(zoo::article()) == Names{"conv_1", "pool_1", "conv_2", "pool_2", "flatten", "fc"});
  CHECK(names_of({Linear{.in = 1, .out = 1}, ReLU{}, Linear{.in = 1, .out = 1}}) ==
        Names{"fc_1", "relu", "fc_2"});
}

TEST_CASE("given names count, and the others are numbered among themselves", "[layers]") {
  CHECK(names_of({ReLU{.name = "first"}, ReLU{}}) == Names{"first", "relu"});
  CHECK(names_of({ReLU{}, ReLU{.name = "middle"}, ReLU{}}) == Names{"relu_1", "middle", "relu_2"});
}

TEST_CASE("names that clash or cannot be are refused", "[layers]") {
  CHECK_THROWS_AS(Sequential(std::vector<AnyLayer>{}), UsageError);
  CHECK(contains(message_of<UsageError>([] {
                   (void)Sequential{ReLU{.name = "a"}, Flatten{.name = "a"}};
                 }),
                 "'a'"));
  CHECK_THROWS_AS((Sequential{ReLU{.name = "relu_1"}, ReLU{}, ReLU{}}), UsageError);
  for (const char* bad : {"a.b", "a b", "\xC3\xA9", "a/b"}) {
    INFO(bad);
    CHECK_THROWS_AS((Sequential{ReLU{.name = bad}}), UsageError);
  }
}

TEST_CASE("a model is a value and its descriptions can be found again", "[layers]") {
  Sequential model = zoo::article();
  const Sequential copy = model;
  model = zoo::mlp();
  CHECK(copy.size() == 6);
  REQUIRE(copy.layer(2).get_if<Conv2d>() != nullptr);
  CHECK(copy.layer(2).get_if<Conv2d>()->out == 16);
  CHECK(copy.layer(2).get_if<Linear>() == nullptr);
  CHECK(copy.layer(2).kind() == "conv");
  CHECK(copy.layer(2).given_name().empty());
}

TEST_CASE("shapes follow the layers", "[layers]") {
  CHECK(zoo::article().shapes({1, 28, 28}) ==
        std::vector<Shape>{{8, 28, 28}, {8, 14, 14}, {16, 14, 14}, {16, 7, 7}, {784}, {10}});
  CHECK(zoo::lenet5().shapes({1, 28, 28})[6] == Shape{400});
  CHECK(zoo::wide_cnn().shapes({1, 28, 28})[6] == Shape{9216});
  CHECK(zoo::mlp().shapes({1, 28, 28}).back() == Shape{10});
}

TEST_CASE("windows give the shapes that TensorFlow gives", "[layers]") {
  const auto conv = [](Extent2d kernel, Extent2d stride, Padding padding) {
    return Conv2d{.in = 1, .out = 1, .kernel = kernel, .stride = stride, .padding = padding}
        .output_shape({1, 7, 8});
  };
  CHECK(conv(2, 1, same) == Shape{1, 7, 8});
  CHECK(conv({2, 4}, {2, 3}, same) == Shape{1, 4, 3});
  CHECK(conv(3, 2, valid) == Shape{1, 3, 3});
  CHECK(conv({3, 1}, 2, {2, 1}) == Shape{1, 5, 5});
  CHECK(MaxPool2d{.kernel = 2}.output_shape({3, 7, 8}) == Shape{3, 3, 4});
  CHECK(MaxPool2d{.kernel = 2, .padding = same}.output_shape({3, 7, 8}) == Shape{3, 4, 4});
  CHECK(MaxPool2d{.kernel = 3, .stride = 1}.output_shape({3, 7, 8}) == Shape{3, 5, 6});
  CHECK(MaxPool2d{.kernel = 3, .stride = {0, 1}}.output_shape({3, 7, 8}) == Shape{3, 2, 6});
}

TEST_CASE("an error in a layer names the layer and keeps its type", "[layers]") {
  const std::string text = message_of<ShapeError>([] { (void)zoo::article().shapes({3, 28, 28}); });
  CHECK(text.rfind("conv_1: ", 0) == 0);
  CHECK(contains(text, "(3, 28, 28)"));
  CHECK(contains(text, "(1, H, W)"));
  const Sequential no_flatten{Conv2d{.in = 1, .out = 2}, Linear{.in = 8, .out = 2, .name = "head"}};
  const std::string hint = message_of<ShapeError>([&] { (void)no_flatten.shapes({1, 2, 2}); });
  CHECK(hint.rfind("head: ", 0) == 0);
  CHECK(contains(hint, "Flatten"));
  CHECK(message_of<UsageError>([] {
          (void)Sequential{Dropout{.rate = 1}}.shapes({4});
        }).rfind("dropout: ", 0) == 0);
}

TEST_CASE("descriptions that cannot be are refused", "[layers]") {
  const Shape image{1, 6, 6};
  CHECK_THROWS_AS((Conv2d{.in = 0, .out = 1}.output_shape(image)), UsageError);
  CHECK_THROWS_AS((Conv2d{.in = 1, .out = -1}.output_shape(image)), UsageError);
  CHECK_THROWS_AS((Conv2d{.in = 1, .out = 1, .kernel = 0}.output_shape(image)), UsageError);
  CHECK_THROWS_AS((Conv2d{.in = 1, .out = 1, .stride = 0}.output_shape(image)), UsageError);
  CHECK_THROWS_AS((Conv2d{.in = 1, .out = 1, .padding = -1}.output_shape(image)), UsageError);
  CHECK_THROWS_AS((Conv2d{.in = 1, .out = 1, .kernel = 7}.output_shape(image)), ShapeError);
  CHECK_THROWS_AS((Conv2d{.in = 1, .out = 1}.output_shape({6})), ShapeError);
  CHECK_THROWS_AS((Conv2d{.in = 1, .out = 1, .padding = same}.output_shape({1, 0, 6})), ShapeError);
  CHECK_THROWS_AS((MaxPool2d{.kernel = 17}.output_shape({1, 20, 20})), UsageError);
  CHECK_THROWS_AS((MaxPool2d{.kernel = -1}.output_shape(image)), UsageError);
  CHECK_THROWS_AS((MaxPool2d{.kernel = 2, .padding = 2}.output_shape(image)), ShapeError);
  CHECK_THROWS_AS((MaxPool2d{}.output_shape({6})), ShapeError);
  CHECK_THROWS_AS((Linear{.in = 0, .out = 2}.output_shape({0})), UsageError);
  CHECK_THROWS_AS((Linear{.in = 5, .out = 2}.output_shape({6})), ShapeError);
  CHECK_THROWS_AS((Dropout{.rate = -0.1F}.output_shape({6})), UsageError);
}

TEST_CASE("the article's model describes itself", "[layers]") {
  CHECK(zoo::article().describe({1, 28, 28}) ==
        R"(name     layer                            output           parameters
         input                            (N, 1, 28, 28)
conv_1   conv 3x3, 1->8, stride 1, same   (N, 8, 28, 28)           80
pool_1   maxpool 2x2, stride 2, same      (N, 8, 14, 14)
conv_2   conv 3x3, 8->16, stride 1, same  (N, 16, 14, 14)        1168
pool_2   maxpool 2x2, stride 2, same      (N, 16, 7, 7)
flatten  flatten                          (N, 784)
fc       linear 784->10                   (N, 10)                7850
9098 parameters
)");
}

TEST_CASE("summaries say what differs from the usual", "[layers]") {
  CHECK(Conv2d{
            .in = 3, .out = 4, .kernel = {1, 5}, .stride = {2, 1}, .padding = {0, 2}, .bias = false}
            .summary() == "conv 1x5, 3->4, stride 2x1, padding 0x2, no bias");
  CHECK(MaxPool2d{.kernel = 3, .stride = 2}.summary() == "maxpool 3x3, stride 2");
  CHECK(Linear{.in = 3, .out = 4, .bias = false}.summary() == "linear 3->4, no bias");
  CHECK(Dropout{.rate = 0.25F}.summary() == "dropout 0.25");
}

TEST_CASE("the zoo knows its models by name", "[layers]") {
  CHECK(zoo::names() == Names{"article", "lenet5", "wide_cnn", "mlp"});
  for (const std::string& name : zoo::names())
    CHECK(zoo::by_name(name).shapes({1, 28, 28}).back() == Shape{10});
  const std::string text = message_of<UsageError>([] { (void)zoo::by_name("resnet"); });
  CHECK(contains(text, "'resnet'"));
  CHECK(contains(text, "article, lenet5, wide_cnn, mlp"));
}
