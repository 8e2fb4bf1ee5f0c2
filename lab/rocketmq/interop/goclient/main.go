// What an ordinary user's program in Go does, with the client of apache/rocketmq-client-go.
//
//	labclient NAMESRV TOPIC GROUP COUNT plain|tls [ACCESS_KEY SECRET_FILE]
//
// One line of JSON for each message that is acknowledged, and one for each that is read again. It ends by itself.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const patience = 40 * time.Second

func say(key string, status string) {
	line, _ := json.Marshal(map[string]string{"key": key, "status": status})
	fmt.Println(string(line))
}

func failed(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

func main() {
	rlog.SetLogLevel("error")
	if len(os.Args) != 6 && len(os.Args) != 8 {
		fmt.Fprintln(os.Stderr, "labclient NAMESRV TOPIC GROUP COUNT plain|tls [ACCESS_KEY SECRET_FILE]")
		os.Exit(2)
	}
	servers, topic, group := []string{os.Args[1]}, os.Args[2], os.Args[3]
	count, err := strconv.Atoi(os.Args[4])
	if err != nil {
		failed("COUNT", err)
	}
	sealed := os.Args[5] == "tls"
	var user primitive.Credentials
	if len(os.Args) == 8 {
		secret, err := os.ReadFile(os.Args[7])
		if err != nil {
			failed("SECRET_FILE", err)
		}
		user = primitive.Credentials{AccessKey: os.Args[6], SecretKey: strings.TrimSpace(string(secret))}
	}
	send(servers, topic, count, sealed, user)
	read(servers, topic, group, count, sealed, user)
}

func send(servers []string, topic string, count int, sealed bool, user primitive.Credentials) {
	own, err := rocketmq.NewProducer(producer.WithNameServer(servers), producer.WithGroupName("go-producer"),
		producer.WithCredentials(user), producer.WithTls(sealed), producer.WithRetry(1))
	if err != nil {
		failed("producer", err)
	}
	if err := own.Start(); err != nil {
		failed("producer", err)
	}
	for number := 0; number < count; number++ {
		key := fmt.Sprintf("go%d", number)
		message := primitive.NewMessage(topic, []byte(key+" of Go")).WithKeys([]string{key})
		result, err := own.SendSync(context.Background(), message)
		if err != nil {
			failed("send", err)
		}
		if result.Status == primitive.SendOK {
			say(key, "SEND_OK")
		}
	}
	if err := own.Shutdown(); err != nil {
		failed("producer", err)
	}
}

func read(servers []string, topic string, group string, count int, sealed bool, user primitive.Credentials) {
	keys := make(chan string, 4096)
	own, err := rocketmq.NewPushConsumer(consumer.WithNameServer(servers), consumer.WithGroupName(group),
		consumer.WithCredentials(user), consumer.WithTls(sealed),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		failed("consumer", err)
	}
	take := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, message := range messages {
			keys <- message.GetKeys()
		}
		return consumer.ConsumeSuccess, nil
	}
	if err := own.Subscribe(topic, consumer.MessageSelector{}, take); err != nil {
		failed("consumer", err)
	}
	if err := own.Start(); err != nil {
		failed("consumer", err)
	}
	end, mine := time.After(patience), map[string]bool{}
	for len(mine) < count {
		select {
		case key := <-keys:
			if strings.HasPrefix(key, "go") && !mine[key] {
				mine[key] = true
				say(key, "READ")
			}
		case <-end:
			failed("consumer", fmt.Errorf("%d of %d read", len(mine), count))
		}
	}
	if err := own.Shutdown(); err != nil {
		failed("consumer", err)
	}
}
