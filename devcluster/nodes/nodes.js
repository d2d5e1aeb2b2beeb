// Does what tools with kafkajs do with the nodes of a cluster. See main.go for the commands and the output.
//
//   node nodes.js walk|create HOST:PORT [TOPIC]

const { Kafka, ConfigResourceTypes, logLevel } = require('kafkajs')

const LEADER_RATE = 'leader.replication.throttled.rate'

async function main(command, address, topic) {
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, retry: { retries: 2 } })
  const admin = kafka.admin()
  await admin.connect()
  const steps = []
  const step = async (node, what, ask) => {
    let error = ''
    try {
      await ask()
    } catch (failure) {
      error = failure.message || failure.name
    }
    steps.push({ node, what, error })
  }
  const { brokers } = await admin.describeCluster()
  const nodes = brokers.map((broker) => broker.nodeId).sort((a, b) => a - b)

  if (command === 'walk') {
    await step(-1, 'ListGroups', () => admin.listGroups())
    for (const id of nodes) {
      const resource = { type: ConfigResourceTypes.BROKER, name: String(id) }
      const loggers = { type: ConfigResourceTypes.BROKER_LOGGER, name: String(id) }
      const alter = (configEntries) => admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries }] })
      await step(id, 'DescribeConfigs', () => admin.describeConfigs({ resources: [resource], includeSynonyms: false }))
      await step(id, 'DescribeConfigs of loggers', () =>
        admin.describeConfigs({ resources: [loggers], includeSynonyms: false })
      )
      await step(id, 'AlterConfigs', () => alter([{ name: LEADER_RATE, value: '1000000' }]))
      await step(id, 'AlterConfigs to nothing', () => alter([]))
    }
  } else {
    const replicationFactor = Math.min(nodes.length, 3)
    const topics = [{ topic, numPartitions: 1, replicationFactor }]
    await step(-1, 'CreateTopics', () => admin.createTopics({ topics, timeout: 10000 }))
  }
  await admin.disconnect()
  console.log(JSON.stringify({ nodes, steps }))
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(error)
  process.exit(1)
})
